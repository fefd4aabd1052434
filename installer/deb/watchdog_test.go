package deb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// computer has watchdogs; modprobe adds more.
type computer struct {
	root    string
	drivers map[string]string // added by modprobe: driver → identity
}

func (c computer) watchdog(t *testing.T, name, identity, state string) {
	t.Helper()
	for path, text := range map[string]string{
		"sys/class/watchdog/" + name + "/identity": identity, "sys/class/watchdog/" + name + "/state": state, "dev/" + name: "",
	} {
		path = filepath.Join(c.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// choose runs the script with a modprobe that creates watchdog9 for a known driver, and
// returns the chosen device and the requested drivers.
func (c computer) choose(t *testing.T) (device, asked string) {
	t.Helper()
	bin := filepath.Join(c.root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"$2\" >>$BASALT_ROOT/asked\ncase $2 in\n"
	for driver, identity := range c.drivers {
		script += driver + ") d=$BASALT_ROOT/sys/class/watchdog/watchdog9; mkdir -p $d; echo '" + identity + "' >$d/identity; echo inactive >$d/state; : >$BASALT_ROOT/dev/watchdog9 ;;\n"
	}
	script += "*) exit 1 ;;\nesac\n"
	for name, text := range map[string]string{"modprobe": script, "udevadm": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(c.root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(c.root, "asked"))
	link := filepath.Join(c.root, "run/basalt/watchdog")
	cmd := exec.Command("sh", "basalt/root/usr/lib/basalt/watchdog", link)
	cmd.Env = append(os.Environ(), "BASALT_ROOT="+c.root, "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run the script: %v\n%s", err, out)
	}
	to, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(filepath.Join(c.root, "asked"))
	return filepath.Base(to), strings.Join(strings.Fields(string(raw)), " ")
}

func TestWatchdogIsTheMachinesOwn(t *testing.T) {
	const soft = "Software Watchdog"
	for name, c := range map[string]struct {
		has     [][3]string // name, identity, state
		drivers map[string]string
		bmc     bool
		want    string
		asked   string
	}{
		"its driver is there":     {[][3]string{{"watchdog0", "iTCO_wdt", "inactive"}}, nil, false, "watchdog0", ""},
		"softdog came first":      {[][3]string{{"watchdog0", soft, "inactive"}, {"watchdog1", "iTCO_wdt", "inactive"}}, nil, false, "watchdog1", ""},
		"softdog is fed already":  {[][3]string{{"watchdog0", soft, "active"}, {"watchdog1", "iTCO_wdt", "inactive"}}, nil, false, "watchdog0", ""},
		"nobody asked for it":     {nil, map[string]string{"iTCO_wdt": "iTCO_wdt", "softdog": soft}, false, "watchdog9", "wdat_wdt iTCO_wdt"},
		"a BMC's":                 {nil, map[string]string{"ipmi_watchdog": "IPMI", "softdog": soft}, true, "watchdog9", "wdat_wdt iTCO_wdt sp5100_tco ipmi_watchdog"},
		"no BMC":                  {nil, map[string]string{"ipmi_watchdog": "IPMI", "softdog": soft}, false, "watchdog9", "wdat_wdt iTCO_wdt sp5100_tco i6300esb softdog"},
		"softdog, and none comes": {[][3]string{{"watchdog0", soft, "inactive"}}, nil, false, "watchdog0", "wdat_wdt iTCO_wdt sp5100_tco i6300esb softdog"},
		"none at all":             {nil, nil, false, "watchdog", "wdat_wdt iTCO_wdt sp5100_tco i6300esb softdog"},
	} {
		t.Run(name, func(t *testing.T) {
			m := computer{t.TempDir(), c.drivers}
			for _, w := range c.has {
				m.watchdog(t, w[0], w[1], w[2])
			}
			if c.bmc {
				if err := os.MkdirAll(filepath.Join(m.root, "dev/ipmi0"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if got, asked := m.choose(t); got != c.want || asked != c.asked {
				t.Errorf("chose %s after requesting drivers %q, want %s and %q", got, asked, c.want, c.asked)
			}
		})
	}
}

// TestWatchdogStaysTheSame checks that a better watchdog that appears later is ignored
// until the next boot, since the active one would reset the machine if it were no
// longer fed.
func TestWatchdogStaysTheSame(t *testing.T) {
	m := computer{t.TempDir(), nil}
	m.watchdog(t, "watchdog0", "Software Watchdog", "inactive")
	for range 2 {
		if got, _ := m.choose(t); got != "watchdog0" {
			t.Fatalf("chose %s, want watchdog0", got)
		}
		m.watchdog(t, "watchdog1", "iTCO_wdt", "inactive")
	}
}
