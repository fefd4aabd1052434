package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func newProcesses(t *testing.T) *Processes {
	t.Helper()
	dir := t.TempDir()
	p, err := NewProcesses(filepath.Join(dir, "state"), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// init ends the main thread of a child, as an exit of the process does first, while another
// thread runs for as long as standard input is open.
func init() {
	if os.Getenv("BASALT_TEST_HEADLESS") == "" {
		return
	}
	go func() {
		runtime.LockOSThread()
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	runtime.LockOSThread() // init runs on the main thread
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// TestAliveWhileThreadsEnd checks that a process counts as alive until its last thread has
// ended: until then its files, sockets and devices are open.
func TestAliveWhileThreadsEnd(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BASALT_TEST_HEADLESS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)
	var who process
	patience.Until(t, time.Minute, "the main thread has ended", func() bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if who, _, err = parseStat(string(text)); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), ") Z ")
	})
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	who.boot = strings.TrimSpace(string(boot))
	if !who.alive() {
		t.Error("a process whose other threads run counts as ended, want it alive")
	}
	_ = in.Close()
	patience.Until(t, time.Minute, "the process counts as ended before it is reaped", func() bool { return !who.alive() })
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestProcesses(t *testing.T) {
	p := newProcesses(t)
	suite(t, p, func(t *testing.T, name string) {
		who, ok := p.find(name)
		if !ok {
			t.Fatalf("no process of %s found, want it running", name)
		}
		if err := unix.Kill(who.pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	})
	if words := p.LastOutput(t.Context(), "one"); !strings.Contains(words, "words third") {
		t.Errorf("last output = %q, want words third in it", words)
	}
}

// TestCrashIsInTheLog checks that the log reports the crash of a program, which
// cannot report it itself.
func TestCrashIsInTheLog(t *testing.T) {
	p := newProcesses(t)
	for script, want := range map[string]string{
		"kill -SEGV $$": "ended by a signal: segmentation fault", "kill -KILL $$": "ended by a signal: killed",
		"echo why; kill -ABRT $$": "why", "echo bye; exit 7": "bye",
	} {
		if err := p.Run(t.Context(), "one", []string{"/bin/sh", "-c", script}); err != nil {
			t.Fatal(err)
		}
		last := ""
		patience.Until(t, 10*time.Second, fmt.Sprintf("%q in the log after %q", want, script), func() bool {
			last = strings.TrimSpace(p.LastOutput(t.Context(), "one"))
			return strings.HasSuffix(last, want)
		})
		if err := p.Stop(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecycledPidIsLeftAlone checks that a PID file of an ended process does no
// harm to the process that has its PID now.
func TestRecycledPidIsLeftAlone(t *testing.T) {
	p := newProcesses(t)
	victim := exec.Command("/bin/sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", victim.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	now, _, err := parseStat(string(stat))
	if err != nil {
		t.Fatal(err)
	}
	write := func(boot, stat string) {
		if err := os.WriteFile(p.file("one", "pid"), []byte(boot+stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(boot), string(stat))
	if _, ok := p.find("one"); !ok {
		t.Fatal("process of the correct PID file not found, without which the test proves nothing")
	}
	earlier := strings.Replace(string(stat), fmt.Sprintf(" %d ", now.start), fmt.Sprintf(" %d ", now.start-1), 1)
	for name, write := range map[string]func(){
		"another start": func() { write(string(boot), earlier) },
		"another boot":  func() { write("00000000-0000-0000-0000-000000000000\n", string(stat)) },
		"torn":          func() { write(string(boot), string(stat[:8])) },
		"empty":         func() { write("", "") },
	} {
		write()
		if ok, err := p.Running(t.Context(), "one"); ok || err != nil {
			t.Errorf("%s: Running = %v, error %v; want false", name, ok, err)
		}
		if err := p.Stop(t.Context(), "one"); err != nil {
			t.Errorf("%s: Stop: %v, want nil", name, err)
		}
	}
	if err := victim.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the other process was ended (%v), want it left alone", err)
	}
}

// TestNoSecondInstance calls Run concurrently, with different arguments: only one
// program may run at a time.
func TestNoSecondInstance(t *testing.T) {
	p := newProcesses(t)
	lock := filepath.Join(t.TempDir(), "alone")
	// flock exits with 9 while another one runs: then nothing would run at the end.
	// It executes the program itself (-F), because a child would keep the lock
	// without it.
	argv := func(word string) []string {
		return []string{"/usr/bin/flock", "-F", "-n", "-E", "9", lock, "/bin/sh", "-c", "exec sleep 1000", word}
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), "one") })
	var all sync.WaitGroup
	for i := range 16 {
		// Another Processes is like another basaltd, unaware of this one.
		other, err := NewProcesses(p.state, p.logs)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := other.Run(context.Background(), "one", argv(fmt.Sprint(i/8))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if ok, err := p.Running(t.Context(), "one"); !ok || err != nil {
		t.Errorf("Running after concurrent starts = %v, error %v, want true", ok, err)
	}
}

// TestKilledBetweenAnyTwoSteps kills a basaltd at any point, which must leave a
// program that the next one finds, or none.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	if dir := os.Getenv("BASALT_TEST_DAEMON"); dir != "" {
		p, err := NewProcesses(filepath.Join(dir, "state"), filepath.Join(dir, "log"))
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		for i := 0; ; i++ { // restarts the program until this process is killed
			if err := p.Run(context.Background(), "one", sleeper(dir, fmt.Sprint(i%3))); err != nil {
				panic(err)
			}
		}
	}
	if testing.Short() {
		t.Skip("takes about 5 s")
	}
	dir := t.TempDir()
	p, err := NewProcesses(filepath.Join(dir, "state"), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), "one") })
	for i := range 25 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledBetweenAnyTwoSteps$")
		cmd.Env = append(os.Environ(), "BASALT_TEST_DAEMON="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("first line of the helper = %q, error %v, want ready", line, err)
		}
		time.Sleep(time.Duration(i) * 1700 * time.Microsecond) // at a different step each time
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if err := p.Run(t.Context(), "one", sleeper(dir, "last")); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		// The programs are found by their arguments, which have the directory.
		eventually(t, "one program", func() bool { return len(sleepers(t, dir)) == 1 })
		who, ok := p.find("one")
		if !ok {
			t.Fatalf("round %d: no process found, want one", i)
		}
		if all := sleepers(t, dir); len(all) != 1 || all[0] != who.pid {
			t.Fatalf("round %d: PID file has %d, running are %v; want only that one", i, who.pid, all)
		}
	}
}

func sleeper(dir, word string) []string {
	return []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done", "sh", "sleeper-of-" + dir, word}
}

// sleepers returns the PIDs of the programs, found by their arguments; the shim has
// these too, so only processes whose command line starts with the program's count.
func sleepers(t *testing.T, dir string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(text, []byte("/bin/sh\x00-c\x00trap")) || !bytes.Contains(text, []byte("sleeper-of-"+dir+"\x00")) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/cmdline", &pid); err != nil {
			t.Fatal(err)
		}
		// Skip the loop's own fork just before it executes sleep.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			var ppid int
			if _, err := fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+4:]), "%d", &ppid); err == nil && !isSleeper(ppid, dir) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func isSleeper(pid int, dir string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(text, []byte("sleeper-of-"+dir+"\x00"))
}

func TestStopKillsTheDeaf(t *testing.T) {
	p := newProcesses(t)
	p.grace = 50 * time.Millisecond
	mark := filepath.Join(t.TempDir(), "up")
	if err := p.Run(t.Context(), "deaf", []string{"/bin/sh", "-c", `trap "" TERM; : >"$1"; while :; do sleep 0.05; done`, "sh", mark}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program's trap set", func() bool { _, err := os.Stat(mark); return err == nil })
	if err := p.Stop(t.Context(), "deaf"); err != nil {
		t.Fatal(err)
	}
	if ok, _ := p.Running(t.Context(), "deaf"); ok {
		t.Error("Running of the stopped program that ignores SIGTERM = true, want false")
	}
}

func TestLogIsTrimmed(t *testing.T) {
	p := newProcesses(t)
	t.Cleanup(func() { _ = p.Stop(context.Background(), "one") })
	argv := []string{"/bin/sh", "-c", `while read -r line; do echo "$line"; done; exec sleep 1000`}
	if err := p.Run(t.Context(), "one", argv); err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 99) + "\n")
	if err := os.WriteFile(p.log("one"), bytes.Repeat(line, maxLog/100+100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), "one", argv); err != nil {
		t.Fatal(err)
	}
	now, err := os.Stat(p.log("one"))
	if err != nil || now.Size() > 1<<10 {
		t.Errorf("trimmed log = %v, error %v, want at most 1 KiB", now, err)
	}
	if old, err := os.Stat(p.log("one") + ".1"); err != nil || old.Size() > maxLog || old.Size() < maxLog/2 {
		t.Errorf("older part of the log = %v, error %v, want %d to %d bytes", old, err, maxLog/2, maxLog)
	}
}

func TestLock(t *testing.T) {
	p := newProcesses(t)
	held, err := p.lock(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := p.Run(ctx, "one", []string{"/bin/sleep", "1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run while the lock is held: error %v, want %v", err, context.DeadlineExceeded)
	}
	held.Close()
	if err := p.Run(t.Context(), "one", []string{"/bin/sleep", "1000"}); err != nil {
		t.Errorf("Run after the lock was released: %v", err)
	}
	if err := p.Stop(t.Context(), "one"); err != nil {
		t.Errorf("Stop after the lock was released: %v", err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (init) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 55 1 1\n")
	f.Add("77 (a) b) R) R 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 1 1\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		who, _, err := parseStat(text)
		if err == nil && who.pid <= 0 {
			t.Errorf("parseStat(%q) = PID %d, want a positive one or an error", text, who.pid)
		}
	})
}
