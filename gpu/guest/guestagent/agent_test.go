package guestagent

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// disks is a fake of the kernel's file systems.
type disks struct {
	all    []string
	fault  map[string]error
	frozen []string
}

func (d *disks) mounted() ([]string, error) { return d.all, nil }

func (d *disks) freeze(path string) error {
	if err := d.fault[path]; err != nil {
		return err
	}
	d.frozen = append(d.frozen, path)
	return nil
}

func (d *disks) thaw(path string) error {
	i := slices.Index(d.frozen, path)
	if i < 0 {
		return errors.New("it is not frozen")
	}
	d.frozen = slices.Delete(d.frozen, i, i+1)
	return nil
}

// newTest returns an agent with fake file systems, and the list of modes that it was told
// to shut down with.
func newTest() (*Agent, *disks, *[]string) {
	d, modes := &disks{all: []string{"/", "/var"}}, &[]string{}
	a := New()
	a.files.system = d
	a.power = func(mode string) error { *modes = append(*modes, mode); return nil }
	return a, d, modes
}

// talk sends the agent commands and returns its answers.
func talk(t *testing.T, a *Agent, commands ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := a.Serve(strings.NewReader(strings.Join(commands, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{`{"execute":"guest-ping"}`, `{"return":{}}`},
		{`{"execute":"guest-ping","id":"x"}`, `{"id":"x","return":{}}`},
		{`{"execute":"guest-sync","arguments":{"id":1234567890123}}`, `{"return":1234567890123}`},
		{`{"execute":"guest-sync-delimited","arguments":{"id":7}}`, "\xff" + `{"return":7}`},
		{"\xff" + `{"execute":"guest-ping"}`, `{"return":{}}`},
		{`{"execute":"guest-pi` + "\xff" + `{"execute":"guest-ping"}`, `{"return":{}}`},
		{`{"execute":"guest-sync"}`, `{"error":{"class":"GenericError","desc":"the argument id is missing"}}`},
		{`{"execute":"guest-set-time"}`, `{"error":{"class":"CommandNotFound","desc":"The command guest-set-time has not been found"}}`},
		{`{"execute":"guest-fsfreeze-status"}`, `{"return":"thawed"}`},
		{`{"execute":"guest-exec-status","arguments":{"pid":0}}`, `{"error":{"class":"GenericError","desc":"PID 0 does not exist: no program was started with it, or its exit was already reported"}}`},
	} {
		a, _, _ := newTest()
		if got := talk(t, a, c.command); len(got) != 1 || got[0] != c.want {
			t.Errorf("answers to %q = %q, want %q", c.command, got, c.want)
		}
	}
}

// run runs a program through the agent until it ends, and returns its last status.
func run(t *testing.T, a *Agent, args execArgs) execStatus {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	var started struct {
		Return struct {
			PID int64 `json:"pid"`
		} `json:"return"`
	}
	answer := talk(t, a, fmt.Sprintf(`{"execute":"guest-exec","arguments":%s}`, b))
	if err := json.Unmarshal([]byte(answer[0]), &started); err != nil || started.Return.PID == 0 {
		t.Fatalf("answer to guest-exec = %s (%v), want a process ID", answer, err)
	}
	var st struct {
		Return execStatus `json:"return"`
	}
	patience.Until(t, 30*time.Second, "the program's end", func() bool {
		answer := talk(t, a, fmt.Sprintf(`{"execute":"guest-exec-status","arguments":{"pid":%d}}`, started.Return.PID))
		if err := json.Unmarshal([]byte(answer[0]), &st); err != nil {
			t.Fatalf("decode the answer to guest-exec-status %s: %v", answer, err)
		}
		return st.Return.Exited
	})
	return st.Return
}

func TestExec(t *testing.T) {
	a, _, _ := newTest()
	text := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	yes := json.RawMessage("true")
	st := run(t, a, execArgs{Path: "sh", Arg: []string{"-c", `cat; echo "$WORD" >&2; exit 3`}, Env: []string{"WORD=said", "PATH=/usr/bin:/bin"}, Input: []byte("in"), Capture: yes})
	if *st.ExitCode != 3 || st.Out != text("in") || st.Err != text("said\n") {
		t.Errorf("status = %+v, want exit code 3, output in and error output said", st)
	}
	if st = run(t, a, execArgs{Path: "sh", Arg: []string{"-c", "kill -9 $$"}, Capture: yes}); st.Signal == nil || *st.Signal != 9 || st.ExitCode != nil {
		t.Errorf("status of a killed program = %+v, want signal 9 and no exit code", st)
	}
	if st = run(t, a, execArgs{Path: "sh", Arg: []string{"-c", "echo unheard"}}); st.Out != "" {
		t.Errorf("status without capture-output = %+v, want no output", st)
	}
	st = run(t, a, execArgs{Path: "head", Arg: []string{"-c", fmt.Sprint(maxOutput + 1), "/dev/zero"}, Capture: yes})
	if n := base64.StdEncoding.DecodedLen(len(st.Out)); !st.OutTruncated || n < maxOutput || n > maxOutput+3 {
		t.Errorf("output of %d bytes, truncated %v; want %d, truncated", n, st.OutTruncated, maxOutput)
	}
	// hypervisor/libvirt recognizes by these words that a program does not exist.
	if got := talk(t, a, `{"execute":"guest-exec","arguments":{"path":"/no/such"}}`); !strings.Contains(got[0], "Failed to execute child process") {
		t.Errorf("answer for a program that does not exist = %s, want that it failed to execute", got)
	}
	if len(a.programs.all)+len(a.programs.order) > 0 {
		t.Errorf("after the end of all programs was reported, %d are stored and %d in order, want none", len(a.programs.all), len(a.programs.order))
	}
}

// The agent stores a limited number of programs whose end the host does not query, and
// refuses to start more programs than the limit.
func TestExecIsLimited(t *testing.T) {
	a, _, _ := newTest()
	for range maxPrograms + 5 {
		talk(t, a, `{"execute":"guest-exec","arguments":{"path":"true"}}`)
		for _, p := range a.programs.all {
			patience.Receive(t, 30*time.Second, "the program's end", p.done)
		}
	}
	if n := len(a.programs.all); n != maxPrograms || n != len(a.programs.order) {
		t.Errorf("%d ended programs are stored, %d in order, want %d", n, len(a.programs.order), maxPrograms)
	}
	busy, _, _ := newTest()
	defer func() {
		for _, p := range busy.programs.all {
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}()
	for range maxPrograms {
		talk(t, busy, `{"execute":"guest-exec","arguments":{"path":"sleep","arg":["600"]}}`)
	}
	if got := talk(t, busy, `{"execute":"guest-exec","arguments":{"path":"true"}}`); !strings.Contains(got[0], "64 programs are already running, the maximum") {
		t.Errorf("answer to guest-exec beyond the maximum = %s, want that 64 programs are running", got)
	}
}

func TestFreeze(t *testing.T) {
	a, d, _ := newTest()
	d.all = append(d.all, "/boot/efi")
	d.fault = map[string]error{"/boot/efi": errNotFreezable}
	got := talk(t, a, `{"execute":"guest-fsfreeze-freeze"}`, `{"execute":"guest-fsfreeze-status"}`, `{"execute":"guest-exec","arguments":{"path":"true"}}`,
		`{"execute":"guest-fsfreeze-freeze"}`, `{"execute":"guest-ping"}`)
	if got[0] != `{"return":2}` || got[1] != `{"return":"frozen"}` || !strings.Contains(got[2], "not allowed") || !strings.Contains(got[3], "not allowed") || got[4] != `{"return":{}}` {
		t.Errorf("answers = %q, want 2, frozen, two that are not allowed, and one without a result", got)
	}
	if !slices.Equal(d.frozen, []string{"/var", "/"}) {
		t.Errorf("frozen file systems = %q, want /var and /", d.frozen)
	}
	if got := talk(t, a, `{"execute":"guest-fsfreeze-thaw"}`, `{"execute":"guest-fsfreeze-thaw"}`); got[0] != `{"return":2}` || got[1] != `{"return":0}` || len(d.frozen) > 0 {
		t.Errorf("answers to two thaws = %q, still frozen: %q; want 2, 0, and none frozen", got, d.frozen)
	}
	d.fault = map[string]error{"/": errors.New("input/output error")}
	if got := talk(t, a, `{"execute":"guest-fsfreeze-freeze"}`, `{"execute":"guest-fsfreeze-status"}`); !strings.Contains(got[0], "failed to freeze /") || got[1] != `{"return":"thawed"}` || len(d.frozen) > 0 {
		t.Errorf("freeze with a fault of /: answers %q, frozen %q; want an error, thawed, and none frozen", got, d.frozen)
	}
}

func TestMount(t *testing.T) {
	for line, want := range map[string]string{
		"29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro": "254:1 /",
		`40 29 254:2 / /with\040blank rw shared:9 master:2 - xfs /dev/vdb rw`:       "254:2 /with blank",
		"41 29 11:0 / /media ro - iso9660 /dev/sr0 ro":                              "",
		"42 29 254:3 / /read rw - ext4 /dev/vdc ro":                                 "",
		"22 29 0:20 / /proc rw - proc proc rw":                                      "",
		"44 29 7:0 / /snap rw - squashfs /dev/loop0 rw":                             "",
		"a line": "",
	} {
		device, path, ok := mount(line)
		if got := strings.TrimSpace(device + " " + path); got != want || ok != (want != "") {
			t.Errorf("mount(%s) = %q, %v; want %q", line, got, ok, want)
		}
	}
}

func TestShutdown(t *testing.T) {
	a, _, modes := newTest()
	got := talk(t, a, `{"execute":"guest-shutdown"}`, `{"execute":"guest-shutdown","arguments":{"mode":"reboot"}}`, `{"execute":"guest-shutdown","arguments":{"mode":"explode"}}`)
	if len(got) != 1 || !strings.Contains(got[0], "explode") || !slices.Equal(*modes, []string{"powerdown", "reboot"}) {
		t.Errorf("answers %q, modes %q; want one error about explode, and modes powerdown and reboot", got, *modes)
	}
}

// QEMU's own agent gives answers of the same form to the same commands.
func TestAsQEMUs(t *testing.T) {
	theirs, err := exec.LookPath("qemu-ga")
	if err != nil {
		t.Fatal("qemu-ga is not installed (installer/dev/setup.sh installs it): ", err)
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(theirs, "-m", "unix-listen", "-p", socket, "-t", dir, "-f", filepath.Join(dir, "pid"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var c net.Conn
	patience.Until(t, 30*time.Second, "qemu-ga", func() bool {
		c, err = net.Dial("unix", socket)
		return err == nil
	})
	defer c.Close()
	patience.Limit(t, 30*time.Second, c)
	lines := bufio.NewReader(c)
	ask := func(command string) string {
		if _, err := io.WriteString(c, command+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(line, "\n")
	}
	a, _, _ := newTest()
	for _, command := range []string{
		`{"execute":"guest-sync-delimited","arguments":{"id":99}}`, `{"execute":"guest-sync","arguments":{"id":5}}`, `{"execute":"guest-ping"}`,
		`{"execute":"guest-fsfreeze-status"}`, `{"execute":"guest-no-such"}`, `{"execute":"guest-sync"}`, `{"execute":"guest-exec","arguments":{"path":"/no/such"}}`,
	} {
		their, our := ask(command), talk(t, a, command)[0]
		if shape(t, their) != shape(t, our) {
			t.Errorf("answer to %s = %s, want the form of QEMU's: %s", command, our, their)
		}
	}
	// The answers for a program that has ended have the same fields.
	pid := func(answer string) int64 {
		var v struct {
			Return struct {
				PID int64 `json:"pid"`
			} `json:"return"`
		}
		if err := json.Unmarshal([]byte(answer), &v); err != nil || v.Return.PID == 0 {
			t.Fatalf("answer to guest-exec = %s (%v), want a process ID", answer, err)
		}
		return v.Return.PID
	}
	end := func(ask func(string) string) (answer string) {
		id := pid(ask(`{"execute":"guest-exec","arguments":{"path":"sh","arg":["-c","echo out; echo err >&2; exit 4"],"capture-output":true}}`))
		patience.Until(t, 30*time.Second, "the program's end", func() bool {
			answer = ask(fmt.Sprintf(`{"execute":"guest-exec-status","arguments":{"pid":%d}}`, id))
			return strings.Contains(answer, "exitcode")
		})
		return answer
	}
	their, our := end(ask), end(func(q string) string { return talk(t, a, q)[0] })
	if shape(t, their) != shape(t, our) {
		t.Errorf("answer for a program that has ended = %s, want the form of QEMU's: %s", our, their)
	}
}

// shape returns an answer in a form that can be compared: its result with sorted keys, or
// the class of its error.
func shape(t *testing.T, answer string) string {
	t.Helper()
	rest, delimited := strings.CutPrefix(answer, "\xff")
	var v struct {
		Return any `json:"return"`
		Error  struct {
			Class string `json:"class"`
		} `json:"error"`
	}
	if err := json.Unmarshal([]byte(rest), &v); err != nil {
		t.Fatalf("decode the answer %q: %v", answer, err)
	}
	if m, ok := v.Return.(map[string]any); ok {
		for _, k := range []string{"out-truncated", "err-truncated"} { // QEMU's agent includes them if they are false
			delete(m, k)
		}
	}
	return fmt.Sprint(delimited, v)
}

// A command that is too long or invalid is answered with an error, and the next one works.
func TestServeGoesOn(t *testing.T) {
	a, _, _ := newTest()
	got := talk(t, a, `{"execute":"`+strings.Repeat("x", maxLine)+`"}`, "garbage", "", "[]", `{"execute":"guest-ping"}`)
	if len(got) != 4 || !strings.Contains(got[0], "decode command") || got[3] != `{"return":{}}` {
		t.Errorf("answers = %q, want 4: a decode error first and a result last", got)
	}
	if err := a.Serve(io.MultiReader(strings.NewReader(`{"execute":"guest-ping"}`+"\n"), broken{}), io.Discard); err == nil {
		t.Error("Serve of a port that cannot be read returned nil, want the read error")
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"execute":"guest-sync-delimited","arguments":{"id":1}}`))
	f.Add([]byte("\xff{\"execute\":\"guest-fsfreeze-freeze\"}\n{\"execute\":\"guest-fsfreeze-thaw\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, _, _ := newTest()
		a.start = func(*exec.Cmd) error { return errors.New("nothing runs here") }
		if err := a.Serve(bytes.NewReader(b), io.Discard); err != nil {
			t.Errorf("Serve(%q): %v", b, err)
		}
	})
}
