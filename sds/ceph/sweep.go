package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// disks returns all RBD images of the pool.
func (d *Driver) disks(ctx context.Context) ([]string, error) {
	raw, err := d.rbd(ctx, "ls", "--format", "json", d.opt.Pool)
	if err != nil {
		return nil, err
	}
	var all []string
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("rbd ls: %w", err)
	}
	return all, nil
}

// trash returns the disks whose removal has started.
func (d *Driver) trash(ctx context.Context) ([]string, error) {
	raw, err := d.rbd(ctx, "trash", "ls", "--all", "--format", "json", d.opt.Pool)
	if err != nil {
		return nil, err
	}
	return decodeTrash(raw)
}

func decodeTrash(raw []byte) ([]string, error) {
	var all []struct{ Name string }
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("rbd trash ls: %w", err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, nil
}

// abandoned is the age from which a disk of another node that no log names is
// removed: much older than any disk that is being created or read.
const abandoned = 7 * 24 * time.Hour

// Sweep removes the remains of interrupted operations: disks that no log
// names, snapshots and clones for readers, and logs of what was deleted long
// ago. A disk that a log names is complete; the name of another one contains
// the session of its creator. Of this node's sessions only this process's is
// alive, and it knows what it holds; what other nodes left, which may never
// return, is removed by its age.
func (d *Driver) Sweep(ctx context.Context) error {
	trash, err := d.trash(ctx)
	if err != nil {
		return err
	}
	disks, err := d.disks(ctx)
	if err != nil {
		return err
	}
	var errs []error
	try := func(verb func(context.Context, string) error, all []string) {
		for _, disk := range all {
			if err := verb(ctx, disk); err != nil && !command.Is(err, syscall.EBUSY) { // it has a clone that is in use
				errs = append(errs, err)
			}
		}
	}
	try(d.emptyTrash, trash)
	try(d.sweep, disks)
	return errors.Join(append(errs, d.removeOldLogs(ctx))...)
}

// emptyTrash removes a disk of Basalt from the trash, because its removal was
// decided before. What an operator has put there manually has another name,
// and stays.
func (d *Driver) emptyTrash(ctx context.Context, disk string) error {
	if _, _, _, ours := ownerOf(disk); !ours && !strings.HasPrefix(disk, readMark) {
		return nil
	}
	return d.removeDisk(ctx, disk)
}

func (d *Driver) sweep(ctx context.Context, disk string) error {
	if session, ok := strings.CutPrefix(disk, readMark); ok {
		if dead, err := d.deadDisk(ctx, disk, session); err != nil || !dead {
			return err
		}
		return d.removeDisk(ctx, disk)
	}
	k, id, session, ok := ownerOf(disk)
	if !ok {
		return nil // not a disk of Basalt
	}
	s, err := d.read(ctx, k, id)
	if err != nil {
		return err
	}
	if s.names(disk) {
		return d.sweepReaders(ctx, k, disk)
	}
	if !slices.Contains(s.over(), disk) {
		if dead, err := d.deadDisk(ctx, disk, session); err != nil || !dead {
			return err
		}
		if s, err = d.void(ctx, k, id, disk); err != nil || s.names(disk) {
			return err
		}
	}
	return d.removeDisk(ctx, disk)
}

// deadDisk reports whether no process creates the disk or reads from it any
// more.
func (d *Driver) deadDisk(ctx context.Context, disk, session string) (bool, error) {
	if d.own(session) {
		return !d.held.has(strings.TrimSuffix(disk, sentMark)), nil
	}
	made, err := d.madeAt(ctx, disk)
	if command.Is(err, syscall.ENOENT) { // it is being created or removed
		return false, nil
	}
	return err == nil && d.opt.Now().Sub(made) >= abandoned, err
}

// own reports whether a session is, or was, one of this node.
func (d *Driver) own(session string) bool { return strings.HasPrefix(session, nodeMark(d.opt.Node)) }

// clones returns the clones of a snapshot, except those that dead processes
// left.
func (d *Driver) clones(ctx context.Context, disk, name string) ([]string, error) {
	all, err := d.children(ctx, disk, name)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	for _, c := range all {
		verb := d.sweep
		if c.Trash {
			verb = d.emptyTrash
		}
		if err := verb(ctx, c.Image); err != nil && !command.Is(err, syscall.EBUSY) && !command.Is(err, syscall.ENOENT) {
			return nil, err
		}
	}
	var names []string
	all, err = d.children(ctx, disk, name)
	for _, c := range all {
		names = append(names, c.Image)
	}
	return names, err
}

// sweepReaders removes the readers' snapshots of a volume left by dead
// processes.
func (d *Driver) sweepReaders(ctx context.Context, k kind, disk string) error {
	if k != volumes {
		return nil
	}
	snaps, err := d.snaps(ctx, disk)
	if command.Is(err, syscall.ENOENT) {
		return nil
	}
	for _, s := range snaps {
		session, ok := strings.CutPrefix(s.Name, readMark)
		if !ok {
			continue
		}
		made, bad := s.madeAt()
		if d.own(session) && !d.held.has(s.Name) || bad == nil && d.opt.Now().Sub(made) >= abandoned {
			bad = errors.Join(bad, d.removeSnap(ctx, disk, s.Name))
		}
		err = errors.Join(err, bad)
	}
	return err
}
