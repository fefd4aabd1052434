package libvirt

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// The guest agent's commands: QEMU's docs/interop/qemu-ga-ref.rst. Its
// responses come from the guest and are untrusted; libvirt limits their
// length.
const (
	agentTimeout = 10      // seconds for one command
	agentRate    = 8 << 10 // bytes of a command per second that a slow guest (emulated, on a busy node) receives
	pollFirst    = 20 * time.Millisecond
	pollLast     = 500 * time.Millisecond
)

// AgentPing implements hypervisor.Driver.
func (d *Driver) AgentPing(ctx context.Context, id api.InstanceID) error {
	_, err := d.agent(ctx, id, "guest-ping", nil)
	return err
}

// Freeze implements hypervisor.Driver.
func (d *Driver) Freeze(ctx context.Context, id api.InstanceID) (n int, err error) {
	raw, err := d.agent(ctx, id, "guest-fsfreeze-status", nil)
	if err != nil {
		return 0, err
	}
	if string(raw) == `"frozen"` { // the agent rejects a second freeze
		return 0, nil
	}
	if raw, err = d.agent(ctx, id, "guest-fsfreeze-freeze", nil); err != nil {
		return 0, err
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, fmt.Errorf("guest agent of %s: %w", id, err)
	}
	return n, nil
}

// Thaw implements hypervisor.Driver.
func (d *Driver) Thaw(ctx context.Context, id api.InstanceID) error {
	_, err := d.agent(ctx, id, "guest-fsfreeze-thaw", nil)
	if c := api.CodeOf(err); c == api.CodeState || c == api.CodeNotFound {
		return nil
	}
	return err
}

// agent sends one command and returns its "return" value.
func (d *Driver) agent(ctx context.Context, id api.InstanceID, command string, args any) (json.RawMessage, error) {
	text, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, args})
	if err != nil {
		return nil, err
	}
	answer, err := with(ctx, d, id, func(dom *lv.Domain) (string, error) {
		if st, err := active(dom); err != nil {
			return "", err
		} else if st != hypervisor.Running {
			return "", api.Errorf(api.CodeState, "instance %s is not running", id)
		}
		return dom.QemuAgentCommand(string(text), lv.DomainQemuAgentCommandTimeout(agentTimeout+len(text)/agentRate), 0)
	})
	if err != nil {
		return nil, err
	}
	var reply struct {
		Return json.RawMessage `json:"return"`
	}
	if err := json.Unmarshal([]byte(answer), &reply); err != nil {
		return nil, fmt.Errorf("guest agent of %s: %s: %w", id, command, err)
	}
	return reply.Return, nil
}

type execArgs struct {
	Path    string   `json:"path"`
	Arg     []string `json:"arg,omitempty"`
	Env     []string `json:"env,omitempty"`
	Input   string   `json:"input-data,omitempty"`
	Capture bool     `json:"capture-output"`
}

type execStatus struct {
	Exited       bool   `json:"exited"`
	ExitCode     int    `json:"exitcode"`
	Signal       int    `json:"signal"`
	Out          string `json:"out-data"`
	Err          string `json:"err-data"`
	OutTruncated bool   `json:"out-truncated"`
	ErrTruncated bool   `json:"err-truncated"`
}

// AgentExec implements hypervisor.Driver.
func (d *Driver) AgentExec(ctx context.Context, id api.InstanceID, e hypervisor.Exec) (hypervisor.ExecResult, error) {
	if err := e.Validate(); err != nil {
		return hypervisor.ExecResult{}, err
	}
	raw, err := d.agent(ctx, id, "guest-exec", execArgs{
		Path: e.Argv[0], Arg: e.Argv[1:], Env: e.Env, Input: base64.StdEncoding.EncodeToString(e.Stdin), Capture: true,
	})
	if err != nil && strings.Contains(err.Error(), "Failed to execute child process") { // glib's message, from the guest agent
		return hypervisor.ExecResult{}, api.Errorf(api.CodeInvalid, "the guest cannot run %q", e.Argv[0]).WithHint("check that the program is installed in the guest and executable")
	}
	if err != nil {
		return hypervisor.ExecResult{}, err
	}
	var started struct {
		PID int64 `json:"pid"`
	}
	if err := json.Unmarshal(raw, &started); err != nil {
		return hypervisor.ExecResult{}, fmt.Errorf("guest agent of %s: %w", id, err)
	}
	for wait := pollFirst; ; wait = min(2*wait, pollLast) {
		raw, err := d.agent(ctx, id, "guest-exec-status", map[string]int64{"pid": started.PID})
		if err != nil {
			return hypervisor.ExecResult{}, err
		}
		var st execStatus
		if err := json.Unmarshal(raw, &st); err != nil {
			return hypervisor.ExecResult{}, fmt.Errorf("guest agent of %s: %w", id, err)
		}
		if st.Exited {
			return st.result(e.OutputLimit())
		}
		select {
		case <-ctx.Done():
			return hypervisor.ExecResult{}, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (st execStatus) result(limit int) (hypervisor.ExecResult, error) {
	r := hypervisor.ExecResult{ExitCode: st.ExitCode, Signal: st.Signal, Truncated: st.OutTruncated || st.ErrTruncated}
	for _, s := range []struct {
		text string
		into *[]byte
	}{{st.Out, &r.Stdout}, {st.Err, &r.Stderr}} {
		b, err := base64.StdEncoding.DecodeString(s.text)
		if err != nil {
			return hypervisor.ExecResult{}, fmt.Errorf("decode output of the guest agent: %w", err)
		}
		if len(b) > limit {
			b, r.Truncated = b[:limit], true
		}
		*s.into = b
	}
	return r, nil
}
