package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
	"github.com/basalt-gpu/basalt/sdn/trace"
)

const (
	traceTime = 15 * time.Second // ovn-trace reads the whole southbound database
	maxTrace  = 1 << 20          // bytes of its answer
)

// Tracer traces packets through the network: according to the objects, and to OVN. It
// works on any node.
type Tracer struct {
	Store   objects.Watcher
	Cluster string
	Self    deploy.Member
	TLS     deploy.TLS
	Run     string // folder of OVN's sockets
}

// Trace implements server.Tracer. Errors about the question are domain errors.
func (r *Tracer) Trace(ctx context.Context, asked api.TraceQuestion) (api.NetworkTrace, error) {
	all, err := objects.Read(ctx, r.Store, Kinds...) // including the latest changes
	if err != nil {
		return api.NetworkTrace{}, fmt.Errorf("read the objects of the network: %w", err)
	}
	s := stateOf(all)
	t, _ := sdn.Intent(s.objects(r.Cluster))
	if asked.Project != "" {
		t = trace.Own(t, asked.Project)
	}
	q, err := trace.NewQuestion(t, asked)
	if err != nil {
		return api.NetworkTrace{}, fmt.Errorf("resolve the ends of the trace: %w", err)
	}
	q.Name = s.name
	v, err := trace.Explain(t, q)
	if err != nil {
		return api.NetworkTrace{}, fmt.Errorf("trace the packet through the objects: %w", err)
	}
	real, why := r.real(ctx, s, t, q, v, asked.Project == "")
	return api.NetworkTrace{Passes: v.Passes, Lines: trace.Lines(q, v, real, why)}, nil
}

// name returns the name of an object, or an empty string.
func (s *state) name(id string) string {
	if i, ok := s.instances[id]; ok {
		return i.Meta.Name
	}
	if n, ok := s.networks[id]; ok {
		return n.Meta.Name
	}
	if g, ok := s.groups[id]; ok {
		return g.Meta.Name
	}
	return s.balancers[id].Meta.Name // empty: the ID is shown
}

// real returns OVN's result, or why it was not queried. A project does not get the path
// of its packets outside of the project.
func (r *Tracer) real(ctx context.Context, s *state, t sdn.Topology, q trace.Question, v trace.Verdict, everything bool) (*trace.Real, string) {
	switch {
	case q.From.Port == "":
		return nil, "only packets sent by instances can be traced"
	case !everything && v.Passes && len(v.Ports) == 0:
		return nil, ""
	}
	args, err := trace.Flow(t, q)
	if err != nil {
		return nil, err.Error()
	}
	f := s.bootstrap()
	if f.Generation == 0 || f.Clustered && f.SB == "" {
		return nil, "the OVN databases are not ready yet"
	}
	i := deploy.Intent{Node: r.Self.Node, Members: s.members(r.Self), Bootstrap: f, TLS: r.TLS}
	text, err := run(ctx, "ovn-trace", append(i.Client(deploy.SB, r.Run), args...))
	if err != nil {
		return nil, err.Error()
	}
	real, err := trace.ParseTrace(text)
	if err != nil {
		return nil, err.Error()
	}
	return &real, ""
}

func run(ctx context.Context, program string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, traceTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.WaitDelay = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", program, err)
	}
	text, err := io.ReadAll(io.LimitReader(out, maxTrace+1))
	if len(text) > maxTrace {
		_ = cmd.Process.Kill()
	}
	switch err = errors.Join(err, cmd.Wait()); {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s timed out after %s", program, traceTime)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("%s: %w: %.200s", program, err, line)
	}
	return string(text), nil
}
