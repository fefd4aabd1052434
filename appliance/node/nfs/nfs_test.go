package nfs

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"nfs://192.0.2.9/srv/basalt":            "192.0.2.9:/srv/basalt",
		"nfs://nas.example.net/vol_1/b-2.a+@":   "nas.example.net:/vol_1/b-2.a+@",
		"nfs://[2001:DB8::9]/srv":               "[2001:db8::9]:/srv",
		"nfs://nas/":                            "nas:/",
		"":                                      "",
		"/srv/shared":                           "",
		"nfs://":                                "",
		"nfs:///srv":                            "",
		"nfs://nas":                             "",
		"nfs://-o/srv":                          "",
		"nfs://nas/../etc":                      "",
		"nfs://nas//srv":                        "",
		"nfs://nas/srv/":                        "",
		"nfs://nas/a b":                         "",
		"nfs://nas/a,exec":                      "",
		"nfs://user@nas/srv":                    "",
		"nfs://nas:2049/srv":                    "",
		"nfs://[fe80::1%eth0]/srv":              "",
		"nfs://[192.0.2.9]/srv":                 "",
		"nfs://[2001:db8::9/srv":                "",
		"NFS://nas/srv":                         "",
		"nfs://nas/" + strings.Repeat("a", 250): "",
	} {
		e, err := Parse(s)
		if (err == nil) != (want != "") || err == nil && e.Source() != want {
			t.Errorf("Parse(%q) = %+v, error %v, want %q", s, e, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"nfs://nas/srv", "nfs://[2001:db8::9]/srv", "nfs://a/b/../c", "nfs://-o/,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			return
		}
		source := e.Source()
		if strings.ContainsAny(source, " ,\t\n\x00\\'\"") || strings.HasPrefix(source, "-") || path.Clean(e.Path) != e.Path || len(s) > maxAddress {
			t.Errorf("Parse(%q) has the unsafe source %q, want an error", s, source)
		}
	})
}

func TestMount(t *testing.T) {
	e := Export{"nas", "/srv"}
	dir := filepath.Join(t.TempDir(), "shared with blank")
	line := func(source string) string {
		return source + " " + strings.ReplaceAll(dir, " ", `\040`) + " nfs4 rw 0 0\n"
	}
	const other = "proc /proc proc rw 0 0\nbroken\n"
	for name, c := range map[string]struct {
		mounts  string
		systemd bool
		fails   error
		want    string // the program that is run, if any
		err     string
	}{
		"mounted":              {other + line("nas:/srv"), true, nil, "", ""},
		"not mounted":          {other, false, nil, "mount", ""},
		"by systemd":           {other, true, nil, "systemd-mount", ""},
		"another one":          {line("nas:/old"), true, nil, "", "nas:/old mounted, want nas:/srv"},
		"over another one":     {line("nas:/old") + line("nas:/srv"), true, nil, "", ""},
		"the server is away":   {other, true, errors.New("Connection refused"), "systemd-mount", "mount nas:/srv: Connection refused"},
		"a directory above it": {strings.ReplaceAll(line("nas:/old"), `shared\040with\040blank`, ""), false, nil, "mount", ""},
	} {
		var ran []string
		err := Mount(t.Context(), System{
			Command: func(_ context.Context, argv ...string) error { ran = argv; return c.fails },
			Mounts:  func() (string, error) { return c.mounts, nil }, Systemd: c.systemd,
		}, e, dir)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: Mount returned error %v, want %q", name, err, c.err)
		}
		if c.want == "" {
			if ran != nil {
				t.Errorf("%s: Mount ran %q, want nothing", name, ran)
			}
			continue
		}
		if len(ran) == 0 || ran[0] != c.want || !slices.Equal(ran[len(ran)-3:], []string{"--", "nas:/srv", dir}) || c.systemd != slices.Contains(ran, "--property=Before=basalt-guests.service") {
			t.Errorf("%s: Mount ran %q, want %s of nas:/srv at %q, before basalt-guests.service only with systemd", name, ran, c.want, dir)
		}
	}
}
