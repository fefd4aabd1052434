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

// kept is a process as systemd keeps it: its program is the file basaltd in its
// folder, and it is started again whenever it ends.
type kept struct {
	*process
	over chan struct{}
}

const restartAfter = 200 * time.Millisecond

// keep starts the program until the test ends.
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
				t.Errorf("%s does not start: %v", p.name, err)
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

// live is one life of the process.
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
	_ = cmd.Wait() // however it ends, it is started again
	return err
}

func (k *kept) signal(s syscall.Signal) { signalOf(k.dir, s) }

// signalOf sends a signal to the process whose folder it is. One that is between
// two lives has none that could get it.
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

// replace a file by a copy of another, at once.
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

// upgradeVar is the folder of the process for which this test binary is the
// upgrade program.
const upgradeVar = "BASALT_TEST_UPGRADE_OF"

// programOf writes the upgrade program of a process.
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

// A release that ends so often, or is not a member by then, does not work. The
// cluster is not to give the node up meanwhile: there is no gpud here, without
// which a node cannot say that it has nothing left.
const (
	newLives = 5
	newLimit = time.Minute
)

// upgradeProgram stands for /usr/lib/basalt/upgrade: a package is a program, and
// to install it is to put it in the old one's place.
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
			return 0 // it runs, or has run
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

// swap the program for another and end the one that runs.
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
