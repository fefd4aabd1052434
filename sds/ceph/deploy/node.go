package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// Daemons runs programs that outlive this process. A name has at most one
// process; Run does nothing if it is running already.
type Daemons interface {
	Run(ctx context.Context, name string, argv []string) error
	Stop(ctx context.Context, name string) error
	Running(ctx context.Context, name string) (bool, error)
}

// Node executes the actions of one node.
type Node struct {
	ID string
	// Dir is the node's directory for Ceph: daemons' data, sockets, keys. Its
	// path must have at most 60 bytes, because of the sockets in it.
	Dir string
	// Address is the node's on its main path; a mon has the one in the intent, which
	// may have another for OSDs and clients, too.
	Address netip.Addr
	Daemons Daemons
	// Crypt encrypts devices; nil: dmcrypt.Kernel.
	Crypt Devices
}

// Names of daemons.
const (
	monDaemon = "ceph-mon"
	mgrDaemon = "ceph-mgr"
)

func osdDaemon(id int) string { return fmt.Sprintf("ceph-osd-%d", id) }

func (n Node) files() layout { return layout(n.Dir) }

// Conf returns the path of the node's ceph.conf, for clients: it locates the
// key of user Client.
func (n Node) Conf() string { return n.files().conf() }

func (n Node) address(in Intent) netip.Addr {
	if m, ok := in.mon(n.ID); ok {
		return m.Address.Addr()
	}
	if in.Address.IsValid() {
		return in.Address
	}
	return n.Address
}

// Round is the result of one round on the node.
type Round struct {
	Seen Observed // before anything was done
	Did  []Action // or rejected
	// Failed are the errors of actions, by the actions' names: UUIDs of OSDs,
	// names of pools and nodes, or empty.
	Failed map[string]error
}

// Round observes, decides, and executes every action that is possible now. It
// joins the errors of all failed actions.
func (n Node) Round(ctx context.Context, in Intent, k Keys, leader bool) (Round, error) {
	r := Round{Failed: map[string]error{}}
	if err := errors.Join(in.Validate(), k.Validate()); err != nil {
		return r, err
	}
	var err error
	if r.Seen, err = n.Observe(ctx, in, k, leader); err != nil {
		return r, err
	}
	r.Did = Next(in, r.Seen)
	var errs []error
	for _, a := range r.Did {
		if err := n.Do(ctx, in, k, a); err != nil {
			r.Failed[a.Name] = err
			errs = append(errs, fmt.Errorf("%v: %w", a, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return r, errors.Join(errs...)
}

// Remove stops every daemon of this node and removes all its data of the
// cluster, which must not contain user data any more.
func (n Node) Remove(ctx context.Context) error {
	names := []string{mgrDaemon, monDaemon}
	dirs, err := filepath.Glob(filepath.Join(n.files().osds(), "*", "whoami"))
	if err != nil {
		return err
	}
	for _, path := range dirs {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if id, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil {
			names = append(names, osdDaemon(id))
		}
	}
	for _, name := range names {
		if err := n.stop(ctx, name); err != nil {
			return err
		}
	}
	mapped, err := n.mappedOSDs(ctx)
	if err != nil {
		return err
	}
	for _, uuid := range mapped {
		if err := n.closeOSD(ctx, uuid); err != nil {
			return err
		}
	}
	return removeDir(n.Dir)
}

// admin returns a runner of programs as the cluster's administrator.
func (n Node) admin() command.Runner { return command.Runner{Conf: n.files().conf()} }

func (n Node) ceph(ctx context.Context, stdin string, args ...string) ([]byte, error) {
	//nolint:wrapcheck // it names the command
	return n.admin().Run(ctx, reader(stdin), "ceph", append([]string{"--format", "json"}, args...)...)
}

// publish renames a complete directory to its name.
func publish(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return atomicfile.Sync(filepath.Dir(to))
}
