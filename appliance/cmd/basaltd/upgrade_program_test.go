package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// kept is a process under a supervisor like systemd: its program is the file basaltd in its
// folder, and it is restarted whenever it ends.
type kept struct {
	*process
	over chan struct{}
}

const restartAfter = 200 * time.Millisecond

// keep runs the program until the test ends.
func keep(t *testing.T, p *process, program string, flags ...string) *kept {
	t.Helper()
	k := &kept{process: p, over: make(chan struct{})}
	k.install(t, program)
	args := append(p.command, flags...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if err := k.live(args); err != nil {
				t.Errorf("start of %s: %v", p.name, err)
				return
			}
			select {
			case <-k.over:
				return
			case <-time.After(restartAfter):
			}
		}
	}()
	t.Cleanup(func() {
		close(k.over)
		for {
			k.signal(syscall.SIGKILL)
			select {
			case <-ended:
				return
			case <-time.After(restartAfter):
			}
		}
	})
	return k
}

// live runs the process once.
func (k *kept) live(args []string) error {
	log, err := os.OpenFile(filepath.Join(k.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(k.dir, "basaltd"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(k.dir, "pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
	_ = cmd.Wait() // it is restarted regardless of how it ends
	return err
}

func (k *kept) signal(s syscall.Signal) { signalOf(k.dir, s) }

// signalOf sends a signal to the process with that folder. It does nothing between two runs of
// the process.
func signalOf(dir string, s syscall.Signal) {
	raw, _ := os.ReadFile(filepath.Join(dir, "pid"))
	if pid, err := strconv.Atoi(string(raw)); err == nil {
		_ = syscall.Kill(pid, s)
	}
}

func (k *kept) install(t *testing.T, program string) {
	t.Helper()
	if err := replace(program, filepath.Join(k.dir, "basaltd")); err != nil {
		t.Fatal(err)
	}
}

// replace atomically replaces a file by a copy of another.
func replace(from, to string) error {
	raw, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", raw, 0o755)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	return err
}

// upgradeVar names the folder of the process for which this test binary is the upgrade program.
const upgradeVar = "BASALT_TEST_UPGRADE_OF"

// programOf writes the upgrade program of a process and returns its path.
func programOf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "upgrade")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\n%s=%s exec %s \"$@\"\n", upgradeVar, dir, self), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A release that ends that often, or is not a member within that time, does not work. The
// cluster must not declare the node lost meanwhile: without gpud, which does not run here, a
// node cannot report that it has nothing left.
const (
	newLives = 5
	newLimit = time.Minute
)

// upgradeProgram replaces /usr/lib/basalt/upgrade: a package is a program, and installing it
// replaces the old program.
func upgradeProgram(dir string, args []string) int {
	var id, version, file, outcome string
	for i := 1; i+1 < len(args); i += 2 {
		switch args[i] {
		case "--id":
			id = args[i+1]
		case "--version":
			version = args[i+1]
		case "--package":
			file = args[i+1]
		case "--outcome":
			outcome = args[i+1]
		}
	}
	if args[0] == "start" {
		f, err := os.OpenFile(filepath.Join(dir, "upgrade-"+id), os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			return 0 // it is running or has run
		}
		cmd := exec.Command(os.Args[0], append([]string{"run"}, args[1:]...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err != nil || f.Close() != nil || cmd.Start() != nil {
			return 1
		}
		return 0
	}
	here := filepath.Join(dir, "basaltd")
	result, why := "Done", ""
	if err := swap(dir, here, file); err != nil || !joined(dir, version) {
		result, why = "RolledBack", fmt.Sprintf("version %s does not become a member, %v", version, err)
		if err := swap(dir, here, here+".old"); err != nil {
			result, why = "Failed", err.Error()
		}
	}
	raw, err := json.Marshal(map[string]string{"id": id, "result": result, "message": why})
	if err != nil || os.WriteFile(outcome+".new", raw, 0o600) != nil || os.Rename(outcome+".new", outcome) != nil {
		return 1
	}
	return 0
}

// swap replaces the program and ends the running process.
func swap(dir, here, file string) error {
	if !strings.HasSuffix(file, ".old") {
		if err := replace(here, here+".old"); err != nil {
			return err
		}
	}
	if err := replace(file, here); err != nil {
		return err
	}
	signalOf(dir, syscall.SIGTERM)
	return nil
}

// joined waits until the node is a member with the version, and reports whether it is.
func joined(dir, version string) bool {
	a, err := client.New(client.Options{Server: "unix:" + filepath.Join(dir, "run/api.sock"), Retries: -1})
	if err != nil {
		return false
	}
	lives := map[string]bool{}
	for w := patience.Start(); !w.Over(newLimit) && len(lives) <= newLives; sleep(context.Background(), 50*time.Millisecond) {
		if pid, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			lives[string(pid)] = true
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		s, err := a.Setup(ctx)
		cancel()
		if err == nil && s.State == api.SetupMember && s.Quorum && s.Version == version {
			return true
		}
	}
	return false
}
