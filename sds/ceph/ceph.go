// Package ceph stores images and volumes in a pool of a Ceph cluster, as RBD
// images, using Ceph's own programs (docs/decisions/0009). DESIGN.md explains
// why an interruption after any step is safe.
//
// A volume is described by its log, a RADOS object that is only appended to,
// which RADOS does atomically: of two nodes that act at the same time, both
// read afterwards which was first. Its content is an RBD image with a unique
// name, which is complete before the log names it:
//
//	basalt.volume.ID         the log
//	v.ID.SESSION.RANDOM      its disk; one that no log names is swept
//	    @SNAPSHOT            its snapshots, protected
//	    @read.SESSION…       for as long as the volume is read
//	read.SESSION.RANDOM      a clone, as long as a snapshot is read
//	basalt.image.ID, i.ID.SESSION.RANDOM@base      the same of an image
//	basalt.deleted           logs that are to be removed
//
// Locks: one per object and process, acquired first; there are none between
// nodes. held.mu and spaceMu are acquired last.
package ceph

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// Options are the options of a driver.
type Options struct {
	FSID     string // of the cluster
	Conf     string // path of ceph.conf, which locates the user's key
	User     string // without "client."
	Pool     string
	Monitors []string // HOST:PORT, for hypervisors; SetMonitors changes them
	// Node is this node: what it leaves behind when it is killed is swept by its
	// next driver.
	Node api.NodeID
	// Staging is a directory of this node, with space for images during imports
	// and exports.
	Staging string
	Limits  sds.Limits
	// Own reports whether an address is this node's; nil: one of its interfaces
	// has it.
	Own func(netip.Addr) bool
	// AllowFileURL and URLs: see the local driver.
	AllowFileURL bool
	URLs         outbound.Options
	// Patience is how long to wait for clients that have a volume open for a
	// moment only, such as another node's commands; 0: 3 s.
	Patience time.Duration
	// Timeout is the limit of a command that does not copy a disk's content; 0:
	// 30 s.
	Timeout time.Duration
	Now     func() time.Time // nil: time.Now
}

// Driver implements sds.Driver.
type Driver struct {
	opt     Options
	session string // of this process's disks
	locks   keyed
	held    held
	mons    atomic.Pointer[[]string] // never nil
	// before is called before each command and may reject it; nil except in
	// tests.
	before func(program string, stdin io.Reader, args []string) error

	spaceMu sync.Mutex
	space   sds.Space
	asked   time.Time // time of the value of space
}

var _ sds.Driver = (*Driver)(nil)

// Open opens the pool, which must exist, and sweeps what this node's dead
// processes left.
func Open(ctx context.Context, opt Options) (*Driver, error) {
	opt.Limits = opt.Limits.WithDefaults()
	opt.Patience = cmp.Or(opt.Patience, 3*time.Second)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Own == nil {
		opt.Own = ownAddress
	}
	d := &Driver{opt: opt, session: nodeMark(opt.Node) + strings.ToLower(rand.Text()[:8])}
	d.SetMonitors(opt.Monitors)
	if err := d.clearStaging(); err != nil {
		return nil, err
	}
	return d, d.Sweep(ctx)
}

// SetMonitors sets the monitors for hypervisors from now on: running machines
// get changes from the monitors themselves.
func (d *Driver) SetMonitors(all []string) {
	all = slices.Clone(all)
	d.mons.Store(&all)
}

// nodeMark returns the part of a session's name that identifies the node.
func nodeMark(n api.NodeID) string {
	sum := sha256.Sum256([]byte(n))
	return hex.EncodeToString(sum[:4])
}

func ownAddress(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	for _, have := range all {
		if p, ok := have.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(p.IP); ok && ip.Unmap() == a.Unmap() {
				return true
			}
		}
	}
	return err != nil // without a list of interfaces, no address is blocklisted
}

// Capabilities implements sds.Driver.
func (d *Driver) Capabilities() sds.Capabilities {
	return sds.Capabilities{
		Name: "ceph", Shared: true, Thin: true, ResizeOnline: true,
		Snapshots: true, LiveSnapshots: true, Clones: true, Encryption: true,
	}
}

// PoolID implements sds.Driver.
func (d *Driver) PoolID() string { return "ceph-" + d.opt.FSID + "-" + d.opt.Pool }

// Close implements sds.Driver.
func (d *Driver) Close() error { return nil }

func (d *Driver) run(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	if err := d.may(program, stdin, args); err != nil {
		return nil, err
	}
	out, err := d.runner().Run(ctx, stdin, program, args...)
	return out, d.explain(ctx, err)
}

func (d *Driver) may(program string, stdin io.Reader, args []string) error {
	if d.before == nil {
		return nil
	}
	return d.before(program, stdin, args)
}

func (d *Driver) runner() command.Runner {
	return command.Runner{Conf: d.opt.Conf, User: d.opt.User, Timeout: d.opt.Timeout}
}

func (d *Driver) rados(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	return d.run(ctx, stdin, "rados", append([]string{"--pool", d.opt.Pool}, args...)...)
}

// explain converts an error to one for users, where it can.
func (d *Driver) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case command.Is(err, syscall.ENOSPC) || command.Is(err, syscall.EDQUOT):
		return errors.Join(diskFull(), err)
	case command.Is(err, syscall.ETIMEDOUT), command.Is(err, syscall.EPERM) && strings.Contains(err.Error(), "timed out"): // ceph's own message
		return errors.Join(unreachable(), err)
	case errors.Is(err, command.ErrTimeout):
		// A full pool makes writers wait.
		if s, spaceErr := d.freshSpace(ctx); spaceErr == nil && s.FreeBytes == 0 {
			return errors.Join(diskFull(), err)
		}
		return errors.Join(unreachable(), err)
	}
	return err
}

func unreachable() error {
	return api.Errorf(api.CodeUnavailable, "the Ceph cluster did not respond in time").WithHint("check the health of the Ceph cluster")
}

func diskFull() error {
	return api.Errorf(api.CodeDiskFull, "the Ceph cluster is full").WithHint("delete volumes, snapshots or images, or add a disk")
}
