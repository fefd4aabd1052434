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
	// maxOutput kept of each of a program's outputs, in bytes.
	maxOutput = 4 << 20
	// maxPrograms that run, or whose end nobody has asked for. Of those that have ended the
	// oldest gives way.
	maxPrograms = 64
)

// programs that were started for the host.
type programs struct {
	all   map[int64]*program
	order []int64 // as they were started
}

type program struct {
	cmd      *exec.Cmd
	out, err output
	capture  bool
	done     chan struct{} // closed when it has ended
}

// output of a program. What is beyond the limit is read and dropped.
type output struct {
	mu        sync.Mutex
	b         bytes.Buffer
	truncated bool
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := min(len(b), maxOutput-o.b.Len())
	o.b.Write(b[:keep])
	o.truncated = o.truncated || keep < len(b)
	return len(b), nil
}

func (o *output) result() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return base64.StdEncoding.EncodeToString(o.b.Bytes()), o.truncated
}

type execArgs struct {
	Path    string          `json:"path"`
	Arg     []string        `json:"arg"`
	Env     []string        `json:"env"`
	Input   []byte          `json:"input-data"` // base64, as encoding/json reads bytes
	Capture json.RawMessage `json:"capture-output"`
}

// captures reads capture-output: a boolean, or since QEMU 8.1 a word.
func (a execArgs) captures() (bool, *fault) {
	switch string(a.Capture) {
	case "", "false", "null", `"none"`:
		return false, nil
	case "true", `"separated"`:
		return true, nil
	}
	return false, generic("capture-output is %.20s, want true, false, none or separated", a.Capture)
}

// exec starts a program and returns its process id.
func (a *Agent) exec(args json.RawMessage) (any, *fault) {
	var q execArgs
	if err := arguments(args, &q); err != nil {
		return nil, err
	}
	capture, err := q.captures()
	if err != nil {
		return nil, err
	}
	if !a.programs.room() {
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
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the agent's restart
	if err := a.start(p.cmd); err != nil {
		return nil, generic("Failed to execute child process “%.200s” (%v)", q.Path, err)
	}
	id := int64(p.cmd.Process.Pid)
	a.programs.add(id, p)
	go func() {
		_ = p.cmd.Wait() // how it ended stands in the process's state
		close(p.done)
	}()
	return map[string]int64{"pid": id}, nil
}

type execStatus struct {
	Exited       bool   `json:"exited"`
	ExitCode     *int   `json:"exitcode,omitempty"`
	Signal       *int   `json:"signal,omitempty"`
	Out          string `json:"out-data,omitempty"`
	Err          string `json:"err-data,omitempty"`
	OutTruncated bool   `json:"out-truncated,omitempty"`
	ErrTruncated bool   `json:"err-truncated,omitempty"`
}

// execStatus tells how a program is. That it has ended is told once, with its output.
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

func (p *programs) add(id int64, started *program) {
	p.drop(id) // the kernel has given the number again
	p.all[id] = started
	p.order = append(p.order, id)
}

func (p *programs) drop(id int64) {
	delete(p.all, id)
	for i, o := range p.order {
		if o == id {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

// room reports whether there is room for one more, and makes it.
func (p *programs) room() bool {
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

// power asks the machine's init.
func power(mode string) error {
	program := map[string]string{"powerdown": "poweroff", "halt": "halt", "reboot": "reboot"}[mode]
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	return cmd.Start()
}
