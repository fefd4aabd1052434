package guestagent

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

const (
	// maxOutput is the number of bytes that are kept of each of a program's outputs.
	maxOutput = 4 << 20
	// maxPrograms is the maximum number of programs that are running, or whose end has not
	// been reported yet. If it is reached, the oldest that has ended is forgotten.
	maxPrograms = 64
)

// programs are the programs that were started for the host.
type programs struct {
	all   map[int64]*program
	order []int64 // process IDs, in the order in which they were started
}

// program is a program that was started for the host.
type program struct {
	cmd      *exec.Cmd
	out, err output
	capture  bool
	done     chan struct{} // closed when it has ended
}

// output is an output of a program. Bytes beyond maxOutput are read and discarded.
type output struct {
	mu        sync.Mutex
	b         bytes.Buffer
	truncated bool
}

// Write implements io.Writer. It never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := min(len(b), maxOutput-o.b.Len())
	o.b.Write(b[:keep])
	o.truncated = o.truncated || keep < len(b)
	return len(b), nil
}

// result returns the output in base64, and whether bytes of it were discarded.
func (o *output) result() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return base64.StdEncoding.EncodeToString(o.b.Bytes()), o.truncated
}

// execArgs are the arguments of guest-exec.
type execArgs struct {
	Path    string          `json:"path"`
	Arg     []string        `json:"arg"`
	Env     []string        `json:"env"`
	Input   []byte          `json:"input-data"` // encoding/json decodes base64
	Capture json.RawMessage `json:"capture-output"`
}

// captures decodes capture-output, which is a boolean or, since QEMU 8.1, a word.
func (a execArgs) captures() (bool, *fault) {
	switch string(a.Capture) {
	case "", "false", "null", `"none"`:
		return false, nil
	case "true", `"separated"`:
		return true, nil
	}
	return false, generic("capture-output is %.20s, want true, false, none or separated", a.Capture)
}

// exec starts a program and returns its process ID.
func (a *Agent) exec(args json.RawMessage) (any, *fault) {
	var q execArgs
	if err := arguments(args, &q); err != nil {
		return nil, err
	}
	capture, err := q.captures()
	if err != nil {
		return nil, err
	}
	if !a.programs.makeRoom() {
		return nil, generic("%d programs are already running, the maximum", maxPrograms)
	}
	p := &program{cmd: exec.Command(q.Path, q.Arg...), capture: capture, done: make(chan struct{})}
	if len(q.Env) > 0 {
		p.cmd.Env = q.Env
	}
	if len(q.Input) > 0 {
		p.cmd.Stdin = bytes.NewReader(q.Input)
	}
	if capture {
		p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	}
	p.cmd.Dir = "/"
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that it survives a restart of the agent
	if err := a.start(p.cmd); err != nil {
		return nil, generic("Failed to execute child process “%.200s” (%v)", q.Path, err)
	}
	id := int64(p.cmd.Process.Pid)
	a.programs.add(id, p)
	go func() {
		_ = p.cmd.Wait() // ProcessState has the exit status
		close(p.done)
	}()
	return map[string]int64{"pid": id}, nil
}

// execStatus is the result of guest-exec-status.
type execStatus struct {
	Exited       bool   `json:"exited"`
	ExitCode     *int   `json:"exitcode,omitempty"`
	Signal       *int   `json:"signal,omitempty"`
	Out          string `json:"out-data,omitempty"`
	Err          string `json:"err-data,omitempty"`
	OutTruncated bool   `json:"out-truncated,omitempty"`
	ErrTruncated bool   `json:"err-truncated,omitempty"`
}

// execStatus reports the state of a program. The end of a program is reported once, with its
// exit status and output; the program is then forgotten.
func (a *Agent) execStatus(args json.RawMessage) (any, *fault) {
	var q struct {
		PID int64 `json:"pid"`
	}
	if err := arguments(args, &q); err != nil {
		return nil, err
	}
	p := a.programs.all[q.PID]
	if p == nil {
		return nil, generic("PID %d does not exist: no program was started with it, or its exit was already reported", q.PID)
	}
	select {
	case <-p.done:
	default:
		return execStatus{}, nil
	}
	a.programs.drop(q.PID)
	st := execStatus{Exited: true}
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		n := int(s.Signal())
		st.Signal = &n
	} else {
		n := p.cmd.ProcessState.ExitCode()
		st.ExitCode = &n
	}
	if p.capture {
		st.Out, st.OutTruncated = p.out.result()
		st.Err, st.ErrTruncated = p.err.result()
	}
	return st, nil
}

// add stores a program that was started with a process ID.
func (p *programs) add(id int64, started *program) {
	p.drop(id) // the kernel may use a process ID again
	p.all[id] = started
	p.order = append(p.order, id)
}

// drop forgets a program.
func (p *programs) drop(id int64) {
	delete(p.all, id)
	for i, o := range p.order {
		if o == id {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

// makeRoom reports whether one more program can be started. If there are maxPrograms, it
// forgets the oldest one that has ended.
func (p *programs) makeRoom() bool {
	if len(p.all) < maxPrograms {
		return true
	}
	for _, id := range p.order {
		select {
		case <-p.all[id].done:
			p.drop(id)
			return true
		default:
		}
	}
	return false
}

// power starts the program that requests a state from the machine's init.
func power(mode string) error {
	program := map[string]string{"powerdown": "poweroff", "halt": "halt", "reboot": "reboot"}[mode]
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd.Start()
}
