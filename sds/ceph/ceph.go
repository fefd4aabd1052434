// Package ceph keeps images and volumes in a pool of a Ceph cluster, as RBD
// images, through Ceph's own programs (docs/decisions/0009). DESIGN.md says
// why each step may be the last.
//
// What a volume is stands in its log, a RADOS object that is only appended to,
// which RADOS does as one step: of two nodes that do something at the same
// time, both read afterwards who was first. What a volume holds is an RBD
// image with a name that nobody else uses, made whole before the log names it:
//
//	basalt.volume.ID         the log
//	v.ID.SESSION.RANDOM      its disk; one that no log names is swept
//	    @SNAPSHOT            its snapshots, protected
//	    @read.SESSION…       for as long as the volume is read
//	read.SESSION.RANDOM      a clone, for as long as a snapshot is read
//	basalt.image.ID, i.ID.SESSION.RANDOM@base      the same of an image
//	basalt.deleted           logs that are to be forgotten
//
// Locks: one per object and process, taken first; between nodes there are none.
// held.mu and spaceMu are taken last.
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

// Options of a driver.
type Options struct {
	FSID     string // of the cluster
	Conf     string // ceph.conf, by which the user's key is found
	User     string // without "client."
	Pool     string
	Monitors []string // HOST:PORT, as hypervisors are told; SetMonitors changes them
	// Node that this is: what it leaves behind when it is killed is swept by
	// its next driver.
	Node api.NodeID
	// Staging is a directory of this node, with room for images on their way
	// in and out.
	Staging string
	Limits  sds.Limits
	// Own reports whether an address is this node's; nil: its interfaces say.
	Own func(netip.Addr) bool
	// AllowFileURL and URLs: as of the local driver.
	AllowFileURL bool
	URLs         outbound.Options
	// Patience with clients that have a volume open for a moment only, as
	// another node's commands do; 0: 3 s.
	Patience time.Duration
	// Timeout of a command that does not move a disk's content; 0: 30 s.
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
	// before a command is run it may be refused; nil outside of tests.
	before func(program string, stdin io.Reader, args []string) error

	spaceMu sync.Mutex
	space   sds.Space
	asked   time.Time // when space was
}

var _ sds.Driver = (*Driver)(nil)

// Open the pool, which must be there, and sweep what this node's dead
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

// SetMonitors that hypervisors are told from now on: those of a machine that
// runs learn of changes from the monitors themselves.
func (d *Driver) SetMonitors(all []string) {
	all = slices.Clone(all)
	d.mons.Store(&all)
}

// nodeMark is the node in the names of sessions.
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
	return err != nil // whoever is not known is not shut out
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

// explain what a user should know of an error.
func (d *Driver) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case command.Is(err, syscall.ENOSPC) || command.Is(err, syscall.EDQUOT):
		return errors.Join(diskFull(), err)
	case command.Is(err, syscall.ETIMEDOUT), command.Is(err, syscall.EPERM) && strings.Contains(err.Error(), "timed out"): // ceph's own words
		return errors.Join(away(), err)
	case errors.Is(err, command.ErrTimeout):
		// A pool that is full lets writers wait.
		if s, spaceErr := d.freshSpace(ctx); spaceErr == nil && s.FreeBytes == 0 {
			return errors.Join(diskFull(), err)
		}
		return errors.Join(away(), err)
	}
	return err
}

func away() error {
	return api.Errorf(api.CodeUnavailable, "the Ceph cluster did not respond in time").WithHint("check the health of the Ceph cluster")
}

func diskFull() error {
	return api.Errorf(api.CodeDiskFull, "the Ceph cluster is full").WithHint("delete volumes, snapshots or images, or add a disk")
}
