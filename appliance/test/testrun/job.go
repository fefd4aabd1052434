package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// job is one call of "go test".
type job struct {
	packages []string
	run      string  // a regexp of tests; empty: all
	story    string  // in BASALT_STORY, for a test of many stories; empty: all
	lane     string  // one job of a lane at a time; empty: none
	took     float64 // in earlier runs, in seconds
	short    bool
	limit    time.Duration // of each package
}

// runJobs runs the jobs, adds their results to the report, and returns when all have ended.
func runJobs(ctx context.Context, jobs []job, r *report) {
	jobs = slices.Clone(jobs)
	busy := map[string]bool{}
	ended := make(chan job)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	before, idle := processors(), 0.0
	for running := 0; ; {
		for ctx.Err() == nil && canStart(running, idle) {
			i := next(jobs, busy)
			if i < 0 {
				break
			}
			j := jobs[i]
			jobs = slices.Delete(jobs, i, i+1)
			busy[j.lane] = j.lane != ""
			running++
			idle = 0 // until its usage has been measured
			go func() {
				if err := j.runTests(ctx, r); err != nil {
					r.broke("go test "+strings.Join(j.packages, " "), err)
				}
				ended <- j
			}()
		}
		if running == 0 {
			break
		}
		select {
		case j := <-ended:
			delete(busy, j.lane)
			running--
		case <-tick.C:
			now := processors()
			before, idle = now, now.idleSince(before)
		}
	}
	if ctx.Err() != nil {
		r.broke("the run", ctx.Err())
	}
}

// runTests runs go test. It returns no error when only tests failed: the report has those.
func (j job) runTests(ctx context.Context, r *report) error {
	// -vet=off: make lint has run it already. -ldflags: without tables for debuggers, which
	// take a third of the linker's time.
	args := []string{"test", "-json", "-vet=off", "-ldflags=-s -w", "-timeout=" + j.limit.String()}
	env := os.Environ()
	if j.short {
		args = append(args, "-short")
	} else {
		// A cached result would not depend on this machine's libvirt.
		args = append(args, "-count=1", "-p=1")
		// For the compiler and linker (Makefile, TOOLS_GC) only, not for the tests.
		args, env = append(args, "-exec=env -u GOGC"), append(env, "GOGC=400")
	}
	if j.run != "" {
		args = append(args, "-run="+j.run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, j.packages...)...)
	cmd.Stderr = os.Stderr
	if j.story != "" {
		env = append(env, "BASALT_STORY="+j.story)
	}
	cmd.Env = env
	// The children receive the signal as well, and clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(stdout)
	if err := cmd.Wait(); readErr == nil && err != nil && cmd.ProcessState.ExitCode() != 1 {
		return err
	}
	return readErr
}

// read adds events to the report until the end of the input.
func (r *report) read(in io.Reader) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			e = event{Action: "note", Output: sc.Text() + "\n"} // a build error, or other output of the tool
		}
		r.add(e)
	}
	return sc.Err()
}
