// Package unattended installs from an answer file and reports its progress in plain
// lines, which the log of a serial console keeps.
//
//	read the file ─► find disk and cards ─► set up the network ─► reach the cluster ─► install
//	nothing has been written to a disk so far ───────────────────────────────────┘
package unattended

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/strictyaml"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"github.com/basalt-gpu/basalt/installer/machine/network"
)

// System is the machine that is installed.
type System interface {
	Disks(ctx context.Context) ([]machine.Disk, error)
	NICs(ctx context.Context) ([]machine.NIC, error)
	Try(ctx context.Context, name string, nic machine.NIC, p answers.Path, gateway netip.Addr, dns []netip.Addr) (network.Up, []network.Check)
	TryDeclared(ctx context.Context, n *hostnet.Network) ([]network.Up, []network.Check)
	Reach(ctx context.Context, t answers.Token) []network.Check
	// GPUs returns the NVIDIA GPUs on the PCI bus.
	GPUs() []hardware.GPU
	Install(ctx context.Context, r install.Request, progress func(install.Progress)) error
}

// Prefix begins every line, so that the lines can be found in a console's log.
const Prefix = "basalt-installer: "

// Run runs the installation described by the file. It returns what is to happen
// afterwards.
func Run(ctx context.Context, sys System, file []byte, out io.Writer) (answers.After, error) {
	say := func(format string, args ...any) { fmt.Fprintf(out, Prefix+format+"\n", args...) }
	a, err := answers.Parse(file)
	if err != nil {
		return "", err
	}
	r, err := request(ctx, sys, a, say)
	if err != nil {
		return "", err
	}
	say("installing %s on %s (%s, serial %s)", a.Hostname, r.Disk.Path, machine.Bytes(r.Disk.SizeBytes), r.Disk.Serial)
	if m := r.Mirror; m != nil {
		say("and on %s (%s, serial %s), which mirrors it", m.Path, machine.Bytes(m.SizeBytes), m.Serial)
	}
	if _, reason := install.Layout(r.Smallest(), a.FileSystems); reason != "" {
		say("one file system: %s", reason)
	}
	last := progress{decile: -1}
	if err := sys.Install(ctx, r, func(p install.Progress) { last.update(p, say) }); err != nil {
		return "", fmt.Errorf("install %s on %s: %w", a.Hostname, r.Disk.Path, err)
	}
	say("complete: %s will answer at https://%s", a.Hostname, net.JoinHostPort(r.Main.Address.Addr().String(), install.APIPort))
	return a.After, nil
}

// request resolves the answers on this machine. It does not write to any disk.
func request(ctx context.Context, sys System, a answers.Answers, say func(string, ...any)) (r install.Request, err error) {
	r.Answers = a
	if a.GPUDriver != nil && len(sys.GPUs()) == 0 {
		say("this computer has no NVIDIA GPU: its driver is not installed")
		r.Answers.GPUDriver = nil
	}
	disks, err := sys.Disks(ctx)
	if err != nil {
		return r, fmt.Errorf("list the disks of this computer: %w", err)
	}
	picked, err := install.Pick(disks, a)
	if err != nil {
		return r, err
	}
	r.Disk = picked[0]
	if len(picked) == 2 {
		r.Mirror = &picked[1]
	}
	try := paths
	if a.Network.Declared != nil {
		try = declared
	}
	if err := try(ctx, sys, &r, say); err != nil {
		return r, err
	}
	if a.Cluster.Token != "" {
		t, err := answers.ParseToken(a.Cluster.Token)
		if err != nil {
			return r, err
		}
		return r, report(sys.Reach(ctx, t), "cluster.join", say)
	}
	return r, nil
}

// declared sets up a declared network: its links for management are the paths to other
// nodes.
func declared(ctx context.Context, sys System, r *install.Request, say func(string, ...any)) error {
	if _, err := sys.NICs(ctx); err != nil { // which brings them up
		return fmt.Errorf("bring up the network cards: %w", err)
	}
	ups, checks := sys.TryDeclared(ctx, r.Answers.Network.Declared)
	if err := report(checks, "network", say); err != nil {
		return err
	}
	for i := range ups {
		switch i {
		case 0:
			r.Main = ups[i]
		case 1:
			r.Second = &ups[i]
		}
	}
	return nil
}

// paths sets up a network of one or two cards.
func paths(ctx context.Context, sys System, r *install.Request, say func(string, ...any)) error {
	nics, err := sys.NICs(ctx)
	if err != nil {
		return fmt.Errorf("bring up the network cards: %w", err)
	}
	main, err := install.PickNIC(nics, r.Answers.Network.Path, "network")
	if err != nil {
		return err
	}
	var checks []network.Check
	r.Main, checks = sys.Try(ctx, "main", main, r.Answers.Network.Path, r.Answers.Network.Gateway, r.Answers.Network.DNS)
	if err := report(checks, "network", say); err != nil {
		return err
	}
	if s := r.Answers.Network.Second; s != nil {
		second, err := install.PickNIC(nics, *s, "network.second")
		if err != nil {
			return err
		}
		if second.Name == main.Name {
			return api.Errorf(api.CodeInvalid, "the second path is the same card as the first: %s", main.Name).At("network.second").WithHint("name another card")
		}
		up, checks := sys.Try(ctx, "second", second, *s, netip.Addr{}, nil)
		if err := report(checks, "network.second", say); err != nil {
			return err
		}
		r.Second = &up
	}
	return nil
}

// report prints the checks; it returns the first failure as an error.
func report(checks []network.Check, field string, say func(string, ...any)) error {
	words := map[network.Outcome]string{network.OK: "ok", network.Warning: "warning", network.Failure: "no"}
	var failed error
	for _, c := range checks {
		line := words[c.Outcome] + ": " + c.Text
		if c.Hint != "" {
			line += " (" + c.Hint + ")"
		}
		say("%s", line)
		if c.Outcome == network.Failure && failed == nil {
			failed = api.Errorf(api.CodeUnavailable, "%s", c.Text).At(field).WithHint("%s", c.Hint)
		}
	}
	return failed
}

// progress reports each step once, and the copying in tenths.
type progress struct {
	id     string
	decile int
}

func (l *progress) update(p install.Progress, say func(string, ...any)) {
	if p.Done {
		return
	}
	if p.ID != l.id {
		l.id, l.decile = p.ID, 0
		say("step %d of %d: %s", p.Step+1, p.Steps, p.Text)
	}
	if d := int(p.Fraction * 10); d > l.decile {
		l.decile = d
		say("step %d of %d: %s: %d %%, %s", p.Step+1, p.Steps, p.Text, d*10, machine.Bytes(p.Bytes))
	}
}

// Explain prints a failure in lines: what, where, and what to do.
func Explain(err error, out io.Writer) {
	var ms strictyaml.Mistakes
	if errors.As(err, &ms) {
		fmt.Fprintf(out, Prefix+"FAILED: the answer file has %d mistake(s)\n", len(ms))
		for _, line := range strings.Split(ms.Error(), "\n") {
			fmt.Fprintln(out, Prefix+"  "+line)
		}
		return
	}
	var known *api.Error
	if !errors.As(err, &known) {
		fmt.Fprintln(out, Prefix+"FAILED: "+err.Error())
		return
	}
	where := ""
	if known.Field != "" {
		where = known.Field + ": "
	}
	fmt.Fprintln(out, Prefix+"FAILED: "+where+known.Message)
	if known.Hint != "" {
		fmt.Fprintln(out, Prefix+"  what to do: "+known.Hint)
	}
}
