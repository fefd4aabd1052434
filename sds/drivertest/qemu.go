package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/storagedaemon"
)

// QEMU implements a Bench's disks with QEMU's own tools.
type QEMU struct {
	CephKey []byte // key of the sources' RBD.User; nil: none
}

const luks, ceph = "luks", "ceph"

func (q QEMU) secrets(key *sds.Encryption) map[string][]byte {
	all := map[string][]byte{}
	if key != nil {
		all[luks] = key.Passphrase
	}
	if q.CephKey != nil {
		all[ceph] = q.CephKey
	}
	return all
}

func (q QEMU) blockDev(src sds.Source, readOnly bool) map[string]any {
	if q.CephKey == nil {
		return src.BlockDev(readOnly, luks, "")
	}
	return src.BlockDev(readOnly, luks, ceph)
}

func (q QEMU) io(src sds.Source, key *sds.Encryption, readOnly bool, commands ...string) error {
	raw, err := json.Marshal(q.blockDev(src, readOnly))
	if err != nil {
		return err
	}
	files, args, err := storagedaemon.Secrets(q.secrets(key))
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return err
	}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	if readOnly {
		args = append(args, "-r")
	}
	cmd := exec.Command("qemu-io", append(args, "json:"+string(raw))...)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "failed") {
		return fmt.Errorf("qemu-io: %w: %s", errors.Join(err), out)
	}
	return nil
}

// Write implements Disk.
func (q QEMU) Write(src sds.Source, key *sds.Encryption, pattern byte, at, bytes int64) error {
	return q.io(src, key, false, fmt.Sprintf("write -P %d %d %d", pattern, at, bytes))
}

// Holds implements Disk.
func (q QEMU) Holds(src sds.Source, key *sds.Encryption, patterns []byte, at, bytes int64) error {
	var commands []string
	for i, p := range patterns {
		commands = append(commands, fmt.Sprintf("read -P %d %d %d", p, at+int64(i)*bytes, bytes))
	}
	return q.io(src, key, true, commands...)
}

// machine is a storage daemon in place of a machine: it opens, freezes and
// merges disks with QEMU's code.
type machine struct {
	q     QEMU
	d     *storagedaemon.Daemon
	ctx   context.Context
	now   sds.Source        // the source that it writes to
	nodes map[string]string // by path
	sock  string            // socket for writes
	next  int               // number of the next node
	t     *testing.T
}

// Start implements Bench.Start.
func (q QEMU) Start(t *testing.T, v sds.Volume, key *sds.Encryption) Machine {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	d, err := storagedaemon.Start(ctx, t.TempDir(), q.secrets(key))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{q: q, d: d, ctx: ctx, now: v.Source, nodes: map[string]string{}, t: t}
	t.Cleanup(func() { m.Stop(t) })
	if err := d.Do(ctx, "blockdev-add", m.named(q.blockDev(v.Source, false)), nil); err != nil {
		t.Fatal(err)
	}
	if err := m.exportNBD(m.nodes[v.Source.Path]); err != nil {
		t.Fatal(err)
	}
	return m
}

// named names each format node of a chain.
func (m *machine) named(node map[string]any) map[string]any {
	m.next++
	name := fmt.Sprintf("node-%d", m.next)
	node["node-name"] = name
	if file, ok := node["file"].(map[string]any); ok {
		if path, ok := file["filename"].(string); ok {
			m.nodes[path] = name
		} else {
			m.nodes[""] = name
		}
	}
	if below, ok := node["backing"].(map[string]any); ok {
		m.named(below)
	}
	return node
}

// exportNBD exports the disk over NBD, for writes of this test.
func (m *machine) exportNBD(node string) error {
	sock := m.t.TempDir() + "/nbd"
	m.sock = sock
	if err := m.d.Do(m.ctx, "nbd-server-start", map[string]any{"addr": map[string]any{"type": "unix", "data": map[string]any{"path": sock}}}, nil); err != nil {
		return err
	}
	return m.export(node)
}

func (m *machine) export(node string) error {
	return m.d.Do(m.ctx, "block-export-add", map[string]any{"type": "nbd", "id": "disk", "name": "disk", "node-name": node, "writable": true}, nil)
}

// Write implements Machine.
func (m *machine) Write(pattern byte, at, bytes int64) error {
	out, err := exec.Command("qemu-io", "-f", "raw", "-c", fmt.Sprintf("write -P %d %d %d", pattern, at, bytes), "-c", "flush", "nbd+unix:///disk?socket="+m.sock).CombinedOutput()
	if err != nil || strings.Contains(string(out), "failed") {
		return fmt.Errorf("qemu-io: %w: %s", errors.Join(err), out)
	}
	return nil
}

// Freezer is a Machine that can be stopped like that of a frozen node
// (SIGSTOP), and continued.
type Freezer interface{ Freeze(on bool) error }

// Freeze implements Freezer.
func (m *machine) Freeze(on bool) error {
	if on {
		return m.d.Signal(syscall.SIGSTOP)
	}
	return m.d.Signal(syscall.SIGCONT)
}

// Overlay implements sds.Live.
func (m *machine) Overlay(ctx context.Context, path string) error {
	if m.now.Path == path {
		return nil
	}
	below := m.now
	over := sds.Source{Path: path, Format: sds.QCOW2, Encrypted: below.Encrypted}
	node := m.named(m.q.blockDev(over, false))
	if err := m.d.Do(ctx, "blockdev-add", node, nil); err != nil {
		return err
	}
	if err := m.d.Do(ctx, "blockdev-snapshot", map[string]any{"node": m.nodes[below.Path], "overlay": node["node-name"]}, nil); err != nil {
		return err
	}
	over.Backing = &below
	m.now = over
	return nil
}

// Commit implements sds.Live.
func (m *machine) Commit(ctx context.Context, top, base string) error {
	for at := &m.now; at.Backing != nil; at = at.Backing {
		if at.Backing.Path != top {
			continue
		}
		err := m.d.Job(ctx, "block-commit", map[string]any{
			"device": m.nodes[m.now.Path], "top-node": m.nodes[top], "base-node": m.nodes[base],
		})
		if err == nil {
			at.Backing = at.Backing.Backing
		}
		return err
	}
	return nil
}

// Resize implements sds.Live. An export has a fixed size, so it is created
// again.
func (m *machine) Resize(ctx context.Context, bytes int64) error {
	if err := m.d.Do(ctx, "block-export-del", map[string]any{"id": "disk", "mode": "hard"}, nil); err != nil {
		return err
	}
	for {
		var left []any
		if err := m.d.Do(ctx, "query-block-exports", nil, &left); err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
	}
	err := m.d.Do(ctx, "block_resize", map[string]any{"node-name": m.nodes[m.now.Path], "size": bytes}, nil)
	return errors.Join(err, m.export(m.nodes[m.now.Path]))
}

// Stop implements Machine.
func (m *machine) Stop(t *testing.T) {
	if m.d == nil {
		return
	}
	if err := m.d.Close(); err != nil {
		t.Errorf("close the storage daemon: %v", err)
	}
	m.d = nil
}
