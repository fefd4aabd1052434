// Package backup stores volumes in a directory or an S3 bucket, with restic:
// each backup is complete, and only data that no earlier one has is stored.
//
//	disk ─QEMU's storage daemon─► a file (FUSE) ─restic─► repository
//	disk ◄─QEMU's storage daemon── a file (FUSE) ◄─restic─ repository
//
// The file has the content that a guest sees, whatever the disk's format. A
// repository is encrypted with its target's password; passwords and keys are
// passed to restic in its environment.
//
//	Run: nothing ─restic─► a snapshot with the backup's id, without the disk
//	                       when that could not be read ─► forgotten again
//	               └─(died)─► data that nothing names, removed by the next Delete
package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/storagedaemon"
)

// Tool creates backups on this node.
type Tool struct {
	// Dir is the directory for disks exposed as files, used by this tool alone
	// and cleared at its start.
	Dir string
	// Cache is restic's cache of repositories; it may be lost.
	Cache string
	// Stall is after how long without progress of the target an operation is
	// abandoned; 0: five minutes.
	Stall time.Duration
}

// Disk is a disk to back up, or to restore into.
type Disk struct {
	Source     sds.Source
	SizeBytes  int64
	Encryption *sds.Encryption // nil: none
	CephKey    []byte          // key of Source.RBD.User
	// MachineState is stored with the disk: what the machine that it is the root
	// volume of has on no disk. It is secret, like the disk; nil: none.
	MachineState []byte
}

// Progress is the progress of a backup or a restore.
type Progress struct {
	DoneBytes, TotalBytes int64
}

// Result is the result of a backup.
type Result struct {
	TotalBytes int64
	AddedBytes int64 // newly stored; -1: unknown, because the backup existed and restic before 0.17 does not record it
}

// Open opens a tool, and cleans up after one that died.
func Open(t Tool) (*Tool, error) {
	if t.Stall == 0 {
		t.Stall = 5 * time.Minute
	}
	entries, err := os.ReadDir(t.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	err = nil
	for _, e := range entries {
		err = errors.Join(err, storagedaemon.Sweep(filepath.Join(t.Dir, e.Name())))
	}
	return &t, errors.Join(err, os.MkdirAll(t.Dir, 0o700), os.MkdirAll(t.Cache, 0o700))
}

// fileName is the name of the disk in a backup, stateName that of the machine's
// state. Earlier versions ignore the latter.
const (
	fileName  = "volume"
	stateName = "machine-state"
)

// Prepare prepares a target: it creates the repository if there is none.
// Nothing else creates one: a repository that is missing later was lost, or is
// not mounted.
func (t *Tool) Prepare(ctx context.Context, target Target) error {
	_, err := t.restic(ctx, target, call{args: []string{"cat", "config"}})
	if errors.Is(err, errNoRepository) {
		_, err = t.restic(ctx, target, call{args: []string{"init"}})
	}
	return err
}

// Answers checks that a prepared target can be reached. It creates nothing, not even a lock.
func (t *Tool) Answers(ctx context.Context, target Target) error {
	_, err := t.restic(ctx, target, call{args: []string{"cat", "config", "--no-lock"}})
	return err
}

// Run backs the disk up as id. It does nothing if the backup exists already.
// It first removes locks that dead processes have left.
func (t *Tool) Run(ctx context.Context, target Target, from Disk, id api.BackupID, progress func(Progress)) (Result, error) {
	if err := sds.CheckID(string(id)); err != nil {
		return Result{}, err
	}
	if _, err := t.restic(ctx, target, call{args: []string{"unlock"}}); err != nil {
		return Result{}, err
	}
	have, err := t.find(ctx, target, id)
	if err != nil {
		return Result{}, err
	}
	for _, snap := range have {
		size, err := t.size(ctx, target, snap.ID)
		if err == nil && size == from.SizeBytes {
			return Result{TotalBytes: size, AddedBytes: snap.added()}, nil
		}
		if err == nil || errors.Is(err, errNoDisk) {
			err = t.forget(ctx, target, snap.ID) // it is incomplete
		}
		if err != nil {
			return Result{}, err
		}
	}
	var made Result
	err = t.expose(ctx, from, false, func(ctx context.Context, file string) error {
		var err error
		made, err = t.store(ctx, target, file, from, id, progress)
		return err
	})
	return made, err
}

// store stores the file, which exposes the disk from, and the machine's state as id.
func (t *Tool) store(ctx context.Context, target Target, file string, from Disk, id api.BackupID, progress func(Progress)) (Result, error) {
	size, files := from.SizeBytes+int64(len(from.MachineState)), []string{filepath.Base(file)}
	if from.MachineState != nil {
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), stateName), from.MachineState, 0o600); err != nil {
			return Result{}, err
		}
		files = append(files, stateName)
	}
	var done struct {
		Total    int64  `json:"total_bytes_processed"`
		Added    int64  `json:"data_added"`
		Snapshot string `json:"snapshot_id"`
	}
	_, err := t.restic(ctx, target, call{
		dir: filepath.Dir(file),
		// --force: an unchanged modification time says nothing about the content.
		args: append([]string{"backup", "--json", "--force", "--host", "basalt", "--tag", string(id)}, files...),
		line: func(kind string, raw []byte) {
			var now struct {
				Done  int64 `json:"bytes_done"`
				Total int64 `json:"total_bytes"`
			}
			switch {
			case kind == "summary":
				_ = json.Unmarshal(raw, &done) // on an error the snapshot ID is empty
			case kind == "status" && progress != nil && json.Unmarshal(raw, &now) == nil:
				progress(Progress{now.Done, now.Total})
			}
		},
	})
	if err == nil && done.Snapshot == "" {
		err = errors.New("restic reported no summary of the backup")
	}
	if err == nil && done.Total != size {
		err = errors.Join(api.Errorf(api.CodeUnavailable, "the volume could not be read completely").Because(api.Cause{Code: api.CauseVolumeUnreadable}, "").WithHint("it is tried again automatically"),
			fmt.Errorf("restic stored %d of %d bytes", done.Total, size))
	}
	if _, gone := os.Stat(file); err != nil && gone != nil {
		err = errors.Join(api.Errorf(api.CodeUnavailable, "the volume is no longer readable").Because(api.Cause{Code: api.CauseVolumeUnreadable}, "").WithHint("it is tried again automatically"), gone, err)
	}
	if err != nil {
		// An incomplete disk is not a backup. The stored data is reused by the next
		// attempt.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		if done.Snapshot != "" {
			err = errors.Join(err, t.forget(clean, target, done.Snapshot))
		}
		return Result{}, err
	}
	return Result{TotalBytes: from.SizeBytes, AddedBytes: done.Added}, nil
}

// Restore restores the backup into a disk of at least its size that is all
// zeros.
func (t *Tool) Restore(ctx context.Context, target Target, id api.BackupID, into Disk, progress func(Progress)) error {
	snap, size, err := t.newest(ctx, target, id)
	if err != nil {
		return err
	}
	if size > into.SizeBytes {
		return api.Errorf(api.CodeInvalid, "backup %s has %d bytes, but the volume has %d", id, size, into.SizeBytes).
			WithHint("restore it into a volume of %d bytes", size)
	}
	return t.expose(ctx, into, true, func(ctx context.Context, file string) error {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		// Parts of raw LUKS that were never written read as noise, not as zeros.
		out := &sparse{f: f, size: size, progress: progress, dense: into.Encryption != nil && into.Source.Format == sds.Raw}
		if _, err := t.restic(ctx, target, call{args: []string{"dump", snap, fileName}, stdout: out}); err != nil {
			return errors.Join(err, out.err)
		}
		if out.at != size {
			return damaged(fmt.Errorf("restored %d of %d bytes", out.at, size))
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// Size returns the size of the backup's disk, in bytes.
func (t *Tool) Size(ctx context.Context, target Target, id api.BackupID) (int64, error) {
	_, size, err := t.newest(ctx, target, id)
	return size, err
}

// Delete deletes the backup, and the data that no other backup needs.
func (t *Tool) Delete(ctx context.Context, target Target, id api.BackupID) error {
	if err := sds.CheckID(string(id)); err != nil {
		return err
	}
	have, err := t.find(ctx, target, id)
	if err != nil || len(have) == 0 {
		return err
	}
	args := []string{"forget", "--prune"}
	for _, snap := range have {
		args = append(args, snap.ID)
	}
	_, err = t.restic(ctx, target, call{args: args})
	return err
}

// Check checks the target's repository: with data set all of its data, which
// takes as long as reading it, otherwise its index and metadata.
func (t *Tool) Check(ctx context.Context, target Target, data bool) error {
	args := []string{"check"}
	if data {
		args = append(args, "--read-data")
	}
	_, err := t.restic(ctx, target, call{args: args})
	if code := api.CodeOf(err); err != nil && code == api.CodeInternal {
		return damaged(err)
	}
	return err
}

func (t *Tool) forget(ctx context.Context, target Target, snapshot string) error {
	_, err := t.restic(ctx, target, call{args: []string{"forget", snapshot}})
	return err
}

// found is a restic snapshot in restic's output.
type found struct {
	ID      string `json:"id"`
	Summary *struct {
		Added int64 `json:"data_added"`
	} `json:"summary"` // since restic 0.17
}

func (f found) added() int64 {
	if f.Summary == nil {
		return -1
	}
	return f.Summary.Added
}

// find returns the restic snapshots of a backup: one, or, after an accident,
// more.
func (t *Tool) find(ctx context.Context, target Target, id api.BackupID) ([]found, error) {
	out, err := t.restic(ctx, target, call{args: []string{"snapshots", "--json", "--tag", string(id)}})
	if err != nil {
		return nil, err
	}
	var all []found
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("restic snapshots: %w", err)
	}
	return all, nil
}

func (t *Tool) newest(ctx context.Context, target Target, id api.BackupID) (snap string, size int64, err error) {
	if err := sds.CheckID(string(id)); err != nil {
		return "", 0, err
	}
	have, err := t.find(ctx, target, id)
	if err != nil {
		return "", 0, err
	}
	if len(have) == 0 {
		return "", 0, api.Errorf(api.CodeNotFound, "backup %s does not exist in the target", id).Because(api.Cause{Code: api.CauseBackupGone}, "")
	}
	snap = have[len(have)-1].ID
	size, err = t.size(ctx, target, snap)
	if errors.Is(err, errNoDisk) {
		err = damaged(err)
	}
	return snap, size, err
}

// MachineState returns the state that was stored with the backup's disk; nil: none.
func (t *Tool) MachineState(ctx context.Context, target Target, id api.BackupID) ([]byte, error) {
	snap, _, err := t.newest(ctx, target, id)
	if err != nil {
		return nil, err
	}
	size, err := t.sizeOf(ctx, target, snap, stateName)
	switch {
	case errors.Is(err, errNoFile):
		return nil, nil
	case err != nil:
		return nil, err
	case size > maxMachineState:
		return nil, damaged(fmt.Errorf("machine state has %d bytes, want at most %d", size, maxMachineState))
	}
	return t.restic(ctx, target, call{args: []string{"dump", snap, stateName}})
}

// maxMachineState is the largest machine state that is read from a backup, in bytes.
const maxMachineState = 4 << 20

var (
	errNoDisk = errors.New("the backup contains no disk")
	errNoFile = errors.New("the backup does not contain the file")
)

// size returns the size of the disk in a restic snapshot.
func (t *Tool) size(ctx context.Context, target Target, snap string) (int64, error) {
	size, err := t.sizeOf(ctx, target, snap, fileName)
	if errors.Is(err, errNoFile) {
		err = errNoDisk
	}
	return size, err
}

// sizeOf returns the size of a file in a restic snapshot.
func (t *Tool) sizeOf(ctx context.Context, target Target, snap, name string) (int64, error) {
	out, err := t.restic(ctx, target, call{args: []string{"ls", "--json", snap}})
	if err != nil {
		return 0, err
	}
	for _, line := range bytes.Split(out, []byte("\n")) {
		var node struct {
			Path string `json:"path"`
			Type string `json:"type"`
			Size int64  `json:"size"`
		}
		if json.Unmarshal(line, &node) == nil && node.Type == "file" && strings.TrimPrefix(node.Path, "/") == name {
			return node.Size, nil
		}
	}
	return 0, errNoFile
}

// expose exposes the disk as a file while do runs.
func (t *Tool) expose(ctx context.Context, d Disk, writable bool, do func(ctx context.Context, file string) error) (err error) {
	dir, err := os.MkdirTemp(t.Dir, "disk-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storagedaemon.Sweep(dir)) }()
	secrets := map[string][]byte{}
	if d.Encryption != nil {
		secrets[diskSecret] = d.Encryption.Passphrase
	}
	key := ""
	if d.CephKey != nil {
		key, secrets[ceph] = ceph, d.CephKey
	}
	q, err := storagedaemon.Start(ctx, dir, secrets)
	if err != nil {
		return fmt.Errorf("start the export of the disk: %w", err)
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if err := q.Open(ctx, fileName, d.Source.BlockDev(!writable, diskSecret, key)); err != nil {
		return fmt.Errorf("open the disk: %w", err)
	}
	file, err := q.Mount(ctx, fileName, writable)
	if err != nil {
		return fmt.Errorf("export the disk as a file: %w", err)
	}
	return do(ctx, file)
}

const (
	diskSecret = "luks"
	ceph       = "ceph"
	cleanTime  = time.Minute
)
