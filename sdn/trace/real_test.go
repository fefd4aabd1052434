package trace

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestOVNAgrees checks that the rows of sdn/ovn for the topology, processed by
// ovn-northd and traced with ovn-trace, give the same result as Explain.
func TestOVNAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real daemons for some 5 s")
	}
	dir, err := os.MkdirTemp("", "ovntr") // paths of unix sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := func(env []string, argv ...string) (string, error) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), append(env, "OVN_RUNDIR="+dir)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	start := func(argv ...string) {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "OVN_RUNDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Skipf("host: %v", err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	endpoint := map[string]string{}
	for _, db := range []string{"nb", "sb"} {
		file := filepath.Join(dir, db+".db")
		if out, err := run(nil, "ovsdb-tool", "create", file, "/usr/share/ovn/ovn-"+db+".ovsschema"); err != nil {
			t.Skipf("host: create an OVN database: %v: %s", err, out)
		}
		socket := filepath.Join(dir, db)
		endpoint[db] = "unix:" + socket
		start("ovsdb-server", "--remote=punix:"+socket, "--unixctl="+socket+".ctl", "-vconsole:off", file)
		patience.Until(t, 30*time.Second, "ovsdb-server for "+db, func() bool {
			c, err := net.Dial("unix", socket)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	start("ovn-northd", "--ovnnb-db="+endpoint["nb"], "--ovnsb-db="+endpoint["sb"], "--unixctl="+dir+"/northd.ctl", "-vconsole:off")
	top, problems := testTopology().Check()
	if len(problems) > 0 {
		t.Fatalf("Check of the test's topology = %+v, want no problems", problems)
	}
	controller := ovn.New(ovn.Options{NB: []string{endpoint["nb"]}, SB: []string{endpoint["sb"]}})
	defer controller.Close()
	if err := controller.Apply(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // wait until ovn-northd has processed everything
		if out, err := run(nil, "ovn-nbctl", "--db="+endpoint["nb"], "--timeout=60", "--wait=sb", "sync"); err == nil {
			break
		} else if i == 3 {
			t.Fatalf("ovn-nbctl sync: %v: %s", err, out)
		}
	}
	// There is no chassis that could be a gateway, and ovn-trace requires a bound
	// one.
	for _, c := range questions {
		q := ask(t, c.from, c.to, c.what)
		if q.From.Port == "" {
			continue // only packets from instances are traced
		}
		args, err := Flow(top, q)
		if err != nil {
			t.Errorf("Flow from %s to %s: %v", c.from, c.to, err)
			continue
		}
		out, err := run(nil, append([]string{"ovn-trace", "-vconsole:off", "--db=" + endpoint["sb"]}, args...)...)
		if err != nil {
			t.Errorf("ovn-trace from %s to %s: %v: %s", c.from, c.to, err, out)
			continue
		}
		if *update {
			file := "testdata/" + strings.NewReplacer("/", "-", ":", "-").Replace(strings.Join([]string{c.from, c.to, c.what}, "_")) + ".trace"
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		real, err := ParseTrace(out)
		if err != nil {
			t.Errorf("ParseTrace from %s to %s: %v", c.from, c.to, err)
			continue
		}
		v, err := Explain(top, q)
		if err != nil {
			t.Fatal(err)
		}
		if !agree(q, v, real) {
			t.Errorf("Explain and OVN disagree:\n%s\n%+v\n%s", strings.Join(Lines(q, v, &real, ""), "\n"), real, out)
		}
	}
}

// TestParseTrace parses stored output of ovn-trace 23.03.
func TestParseTrace(t *testing.T) {
	for name, want := range map[string]Real{
		"ins-app_ins-web_tcp-443": {Ports: []sdn.PortID{port("ins-web")}},
		"ins-app_ins-web_tcp-22":  {Table: "ls_out_acl", Match: "outport == @basalt_ports && ip"},
	} {
		text, err := os.ReadFile("testdata/" + name + ".trace")
		if err != nil {
			t.Fatal(err)
		}
		real, err := ParseTrace(string(text))
		if err != nil {
			t.Errorf("ParseTrace of %s: %v", name, err)
		}
		if len(real.Ports) != len(want.Ports) || !strings.HasPrefix(real.Table, want.Table) || real.Passes() != (len(want.Ports) > 0) {
			t.Errorf("ParseTrace of %s = %+v, want %+v", name, real, want)
		}
	}
	if _, err := ParseTrace("ovn-trace: unknown datapath"); err == nil {
		t.Error("ParseTrace of an error message = nil, want an error")
	}
	if _, err := ParseTrace(strings.Repeat("x", maxTrace+1)); err == nil {
		t.Error("ParseTrace of output beyond the limit = nil, want an error")
	}
}

// TestDisagreement checks that Lines reports a disagreement.
func TestDisagreement(t *testing.T) {
	q := ask(t, "ins-app", "ins-web", "tcp/443")
	v, err := Explain(testTopology(), q)
	if err != nil {
		t.Fatal(err)
	}
	for want, real := range map[string]Real{
		"OVN agrees.": {Ports: []sdn.PortID{port("ins-web")}},
		"OVN DISAGREES: there it is dropped at the receiver's security groups (ls_out_acl).": {Table: "ls_out_acl"},
		"OVN DISAGREES: there it reaches red.":                                               {Ports: []sdn.PortID{port("ins-red")}},
		"OVN DISAGREES: there it does not arrive anywhere.":                                  {},
	} {
		if lines := strings.Join(Lines(q, v, &real, ""), "\n"); !strings.Contains(lines, want) {
			t.Errorf("lines lack %q:\n%s", want, lines)
		}
	}
	if lines := strings.Join(Lines(q, v, nil, "no database"), "\n"); !strings.Contains(lines, "OVN was not queried: no database") {
		t.Errorf("lines do not say that OVN was not queried: no database:\n%s", lines)
	}
}

func FuzzParseTrace(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.trace")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text))
		}
	}
	f.Add(" 0. ls_in_x: no match (implicit drop)\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseTrace(text)
		if err != nil {
			return
		}
		for _, p := range r.Ports {
			if p == "" {
				t.Errorf("ParseTrace = %+v, want no empty port", r)
			}
		}
		_ = Lines(Question{Protocol: "tcp"}, Verdict{}, &r, "")
	})
}
