package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// job is one call of "go test".
type job struct {
	packages []string
	run      string // a regexp of tests; empty: all
	story    string // in BASALT_STORY, for a test of many stories; empty: all
	parallel int    // packages at a time
	short    bool
}

// lane is jobs that run one after the other, beside other lanes.
type lane []job

// limit for one package: a hang must end.
const limit = 45 * time.Minute

// runLanes runs them and tells the report. It returns when all have ended.
func runLanes(ctx context.Context, lanes []lane, r *report) {
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			for _, j := range l {
				if ctx.Err() != nil {
					return
				}
				if err := j.do(ctx, r); err != nil {
					r.broke(fmt.Sprintf("go test of %d packages", len(j.packages)), err)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		r.broke("the run", ctx.Err())
	}
}

// do runs go test. It returns no error when only tests failed: the report has those.
func (j job) do(ctx context.Context, r *report) error {
	// -vet=off: make lint has looked already.
	args := []string{"test", "-json", "-vet=off", "-timeout=" + limit.String()}
	if j.short {
		args = append(args, "-short")
	} else {
		// A cached result says nothing about this machine's libvirt.
		args = append(args, "-count=1", "-p="+strconv.Itoa(j.parallel))
	}
	if j.run != "" {
		args = append(args, "-run="+j.run)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, j.packages...)...)
	cmd.Stderr = os.Stderr
	if j.story != "" {
		cmd.Env = append(os.Environ(), "BASALT_STORY="+j.story)
	}
	// Its children get the signal as well, and clean up.
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

// read events until the end.
func (r *report) read(in io.Reader) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			e = event{Action: "note", Output: sc.Text() + "\n"} // a build error, or the tool's own words
		}
		r.take(e)
	}
	return sc.Err()
}
