package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeProgram creates a program that counts its runs ($n) and then executes
// the script. It returns a function that returns the count.
func fakeProgram(t *testing.T, name, script string) (runs func() int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	count := filepath.Join(dir, "count")
	script = "#!/bin/sh\nulimit -c 0\necho >> " + count + "\nn=$(($(wc -l < " + count + ")))\n" + script
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() int {
		raw, _ := os.ReadFile(count)
		return len(raw)
	}
}

// dies is a script that ends as Ceph's programs do when they abort at their
// exit.
const dies = `echo "  -1> 2026-11-22T01:02:03 monclient: shutdown" >&2; echo "--- end dump of recent events ---" >&2; kill -ABRT $$
`

func TestReadOnlyIsRetried(t *testing.T) {
	half := "echo '{\"half\":'; [ $n -gt 2 ] || { " + dies + "}; echo 1}; cat"
	for _, c := range []struct {
		program, script, stdin string
		args                   []string
		runs                   int
		out, err               string
	}{
		{program: "rbd", script: half, args: []string{"status", "--format", "json", "p/v.1"}, runs: 3, out: "{\"half\":\n1}\n"},
		{program: "ceph", script: half, stdin: "mon dump\nosd dump\n", runs: 3, out: "{\"half\":\n1}\nmon dump\nosd dump\n"},
		{program: "rbd", script: dies, args: []string{"status", "--format", "json", "p/v.1"}, runs: 3, err: "rbd status p/v.1 was killed by signal 6"},
		{program: "rados", script: dies, args: []string{"--pool", "p", "get", "basalt.volume.1", "-"}, runs: 3, err: "rados get basalt.volume.1 - was killed by signal 6"},
		// A change that may be half done is not repeated.
		{program: "rbd", script: dies, args: []string{"snap", "rollback", "p/v.1@s"}, runs: 1, err: "rbd snap rollback p/v.1@s was killed by signal 6"},
		{program: "rados", script: "cat; " + dies, args: []string{"--pool", "p", "append", "basalt.volume.1", "-"}, stdin: "{}\n", runs: 1, err: "rados append basalt.volume.1 - was killed by signal 6"},
		{program: "ceph", script: dies, stdin: "osd dump\nosd pool set p size 3\n", runs: 1, err: "ceph osd dump was killed by signal 6"},
		// An error of the program itself is final.
		{program: "rbd", script: "echo no such thing >&2; exit 2", args: []string{"status", "p/v.1"}, runs: 1, err: "rbd status p/v.1: no such thing (2)"},
	} {
		what := c.program + " " + strings.Join(c.args, " ")
		runs := fakeProgram(t, c.program, c.script)
		out, err := Runner{Conf: "/none"}.Run(t.Context(), strings.NewReader(c.stdin), c.program, c.args...)
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err || err == nil && string(out) != c.out {
			t.Errorf("%s: output %q, %v, want %q and error %q", what, out, err, c.out, c.err)
		}
		if n := runs(); n != c.runs {
			t.Errorf("%s: run %d times, want %d", what, n, c.runs)
		}
		var killed *Killed
		if strings.HasSuffix(c.err, "signal 6") != (errors.As(err, &killed) && killed.Signal == syscall.SIGABRT) {
			t.Errorf("%s: error = %#v, want a *Killed by SIGABRT only for signal 6", what, err)
		}
	}
}

// TestOursIsTheEnd checks that a program killed by this package is not run
// again.
func TestOursIsTheEnd(t *testing.T) {
	runs := fakeProgram(t, "rbd", "exec sleep 1000")
	if _, err := (Runner{Timeout: 100 * time.Millisecond}).Run(t.Context(), nil, "rbd", "ls"); !errors.Is(err, ErrTimeout) || runs() > 1 {
		t.Errorf("Run with a time-out = %v after %d runs, want ErrTimeout after at most one", err, runs())
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan os.Signal, 1) // that the program runs
	signal.Notify(told, syscall.SIGUSR1)
	defer signal.Stop(told)
	runs = fakeProgram(t, "rbd", "kill -USR1 "+strconv.Itoa(os.Getpid())+"; exec sleep 1000")
	go func() { <-told; cancel() }()
	if _, err := (Runner{Timeout: time.Hour}).Run(ctx, nil, "rbd", "ls"); !errors.Is(err, context.Canceled) || runs() != 1 {
		t.Errorf("Run with a canceled context = %v after %d runs, want context.Canceled after one", err, runs())
	}
}

func TestReadOnly(t *testing.T) {
	for line, want := range map[string]bool{
		"rbd --conf /c --id admin --no-mon-config snap ls --format json p/v": true,
		"rbd snap rm p/v@s": false, "rbd snap": false, "rbd": false, "rbd lss": false, "rbd rm ls": false, "rbd export p/v /f": false,
		"rados --pool ls rm x": false, "rados --pool rm ls": true, "rados --pool p get x -": true, "rados --pool p append x -": false,
		"/usr/bin/ceph --connect-timeout 10 df detail --format json": true, "ceph osd pool create ls": false, "ceph": false, "ceph osd safe-to-destroy 1": true,
		"ceph-bluestore-tool show-label --dev /d": true, "ceph-bluestore-tool prime-osd-dir --dev /d": false, "mkfs ls": false,
	} {
		f := strings.Fields(line)
		if got := ReadOnly(f[0], f[1:], ""); got != want {
			t.Errorf("ReadOnly(%s) = %v, want %v", line, got, want)
		}
	}
}

// Programs run at a lower priority than the process that runs them.
func TestNiceness(t *testing.T) {
	_, err := Exec(t.Context(), Exe{Program: "sh", Args: []string{"-c", "until [ $(nice) = 5 ]; do sleep 0.01; done"}})
	if err != nil {
		t.Errorf("wait for a niceness of 5: %v", err)
	}
}
