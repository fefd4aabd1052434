package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// TargetNode is the other node of a Pair.
const TargetNode api.NodeID = "node-drivertest-2"

// Machine is a driver that can migrate machines.
type Machine interface {
	hypervisor.Driver
	hypervisor.Migrator
}

// Pair is two drivers under test, of Node and of TargetNode, between which
// machines migrate. Both have access to the same files.
type Pair struct {
	Open func(t *testing.T) (source, target Machine)
	// Crawl makes the next migration never end; nil: a low bandwidth does so.
	Crawl func(source Machine)
	// CrashMigration makes the next migration fail after the source has given the machine
	// up and before the target runs it.
	CrashMigration func(source Machine)
	// Crashes to test; they need real guests.
	Crashes []Crash
	Slow    bool // guests are real
}

// diskBytes is the size of a disk that is copied: it takes some time at 1
// MiB/s.
const diskBytes = 24 << 20

// Run runs the suite.
func (p Pair) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*testing.T, *pair)
	}{
		{"Shared", testShared}, {"Copied", testCopied}, {"Media", testMovedMedia}, {"Abort", testAbort}, {"ContextEnds", testContextEnds},
		{"TunnelCut", testTunnelCut}, {"Unprepared", testUnprepared}, {"Stranded", testStranded}, {"Refused", testRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, d := p.Open(t)
			c.test(t, p.pair(t, s, d))
		})
	}
	p.crashes(t)
}

// pair creates the pair for one test.
func (p Pair) pair(t *testing.T, s, d Machine) *pair {
	ctx, cancel := patience.Context(t.Context(), 3*enough)
	t.Cleanup(cancel)
	return &pair{
		Pair: p, ctx: ctx,
		source: &bench{Subject: Subject{Slow: p.Slow}, Driver: s, ctx: ctx}, from: s,
		target: &bench{Subject: Subject{Slow: p.Slow}, Driver: d, ctx: ctx}, to: d,
	}
}

type pair struct {
	Pair
	ctx            context.Context
	source, target *bench
	from, to       Machine
}

// booted returns a running machine on the source, and its definition for the
// target, where the migration is prepared.
func (p *pair) booted(t *testing.T) (src, dst hypervisor.Domain) {
	t.Helper()
	src = p.source.booted(t)
	dir, err := os.MkdirTemp("", "basalt-hv-")
	if err != nil {
		t.Fatal(err)
	}
	dst = src
	dst.Node = TargetNode
	dst.SerialSocket, dst.SerialLog = filepath.Join(dir, "serial.sock"), filepath.Join(dir, "console.log")
	dst.AgentSocket, dst.VNCSocket = filepath.Join(dir, "agent.sock"), filepath.Join(dir, "vnc.sock")
	t.Cleanup(func() {
		ctx, cancel := patience.Context(context.Background(), enough)
		defer cancel()
		if err := errors.Join(p.to.Destroy(ctx, dst.ID), p.to.DiscardMigration(ctx, dst.ID), p.to.Undefine(ctx, dst.ID)); err != nil {
			t.Errorf("clean-up of the target: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	return src, dst
}

// addOwnDisks gives the target its own empty disk, and the source another disk
// to copy.
func addOwnDisks(t *testing.T, src, dst *hypervisor.Domain) {
	t.Helper()
	dst.Disks = []hypervisor.Disk{src.Disks[0]}
	dst.Disks[0].Path = filepath.Join(filepath.Dir(dst.SerialLog), "disk.raw")
	st, err := os.Stat(src.Disks[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dst.Disks[0].Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(dst.Disks[0].Path, st.Size()); err != nil {
		t.Fatal(err)
	}
}

func (p *pair) prepare(t *testing.T, d hypervisor.Domain) {
	t.Helper()
	for range 2 { // it is idempotent
		if err := p.to.PrepareMigration(p.ctx, d); err != nil {
			t.Fatalf("prepare: %v", err)
		}
	}
}

// echo writes to the console and waits for the guest's echo.
func echo(t *testing.T, b *bench, id api.InstanceID, word string) {
	t.Helper()
	c, err := b.Console(b.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(enough, func() { _ = c.Close() })
	defer late.Stop()
	defer c.Close()
	if _, err := io.WriteString(c, word); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 0, 4096)
	for !bytes.Contains(got, []byte(word)) {
		buf := make([]byte, 64)
		n, err := c.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			t.Fatalf("the console printed %q, want %q: %v", got, word, err)
		}
	}
}

// wantStayed checks that the machine runs on the source unchanged, and that
// the target has nothing of it.
func (p *pair) wantStayed(t *testing.T, id api.InstanceID) {
	t.Helper()
	p.source.wantState(t, id, hypervisor.Running)
	echo(t, p.source, id, "stayed")
	if err := p.to.DiscardMigration(p.ctx, id); err != nil {
		t.Errorf("DiscardMigration: %v", err)
	}
	p.target.wantState(t, id, hypervisor.Missing)
	for _, m := range []Machine{p.from, p.to} {
		if s, err := m.MigrationStatus(p.ctx, id); err != nil || s.Role != hypervisor.MigrationNone {
			t.Errorf("MigrationStatus after the end = %+v, %v, want role none", s, err)
		}
	}
}

// wantMoved checks that the machine runs on the target, where it has not been
// booted, and that it does not exist on the source.
func (p *pair) wantMoved(t *testing.T, id api.InstanceID) {
	t.Helper()
	p.source.wantState(t, id, hypervisor.Missing)
	p.target.wantState(t, id, hypervisor.Running)
	echo(t, p.target, id, "moved")
	if p.target.boots(id) > 0 {
		t.Errorf("the guest booted %d times on the target, want none", p.target.boots(id))
	}
	for _, m := range []Machine{p.from, p.to} {
		if s, err := m.MigrationStatus(p.ctx, id); err != nil || s.Role != hypervisor.MigrationNone {
			t.Errorf("MigrationStatus after the end = %+v, %v, want role none", s, err)
		}
		if err := m.AbortMigration(p.ctx, id); err != nil {
			t.Errorf("AbortMigration after the end: %v", err)
		}
	}
	wantCode(t, "discard of a running machine", p.to.DiscardMigration(p.ctx, id), api.CodeState)
	if err := p.to.FinishMigration(p.ctx, id); err != nil {
		t.Errorf("FinishMigration after the end: %v", err)
	}
	// Its definition is that of the target: it boots there again.
	if err := errors.Join(p.to.Destroy(p.ctx, id), p.to.Start(p.ctx, id)); err != nil {
		t.Fatal(err)
	}
	p.target.until(t, "the machine has booted on the target", func() bool { return p.target.boots(id) > 0 })
}

func testShared(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	events, err := p.to.Events(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, p.source, src.ID, "here")
	p.prepare(t, dst)
	r, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: p.tunnel(t, src.ID)})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	p.target.expect(t, events, src.ID, hypervisor.EventResumed)
	p.wantMoved(t, src.ID)
}

func testCopied(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	content := make([]byte, 4<<20)
	rand.New(rand.NewSource(1)).Read(content)
	p.writeContent(t, &src, content)
	addOwnDisks(t, &src, &dst)
	p.prepare(t, dst)
	var last hypervisor.MigrationProgress
	r, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{
		Target: dst, Tunnel: p.tunnel(t, src.ID), CopyDisks: []string{"root"}, BandwidthBytesPerSecond: 8 << 20,
		Progress: func(m hypervisor.MigrationProgress) { last = m },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v, at last %+v", r, last)
	if last.DiskTotalBytes == 0 || last.DiskCopiedBytes > last.DiskTotalBytes || last.TransferredBytes > last.TotalBytes {
		t.Errorf("last progress = %+v, want copied <= total and total > 0 for disks, transferred <= total for memory", last)
	}
	p.wantMoved(t, src.ID)
	if p.Slow {
		got, err := os.ReadFile(dst.Disks[0].Path)
		if err != nil || !bytes.Equal(got[1<<20:], content) {
			t.Errorf("the content of the copied disk differs from the source's (%v)", err)
		}
	}
}

// writeContent writes content behind the first MiB of the machine's disk and
// boots it again, because QEMU does not notice a changed size.
func (p *pair) writeContent(t *testing.T, d *hypervisor.Domain, content []byte) {
	t.Helper()
	if err := p.from.Destroy(p.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(d.Disks[0].Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(content, 1<<20)
	if err := errors.Join(err, f.Close(), p.from.Start(p.ctx, d.ID)); err != nil {
		t.Fatal(err)
	}
	p.source.until(t, "the machine has booted again", func() bool { return p.source.boots(d.ID) > 1 })
}

// crawling starts a migration that does not end by itself, and returns when it
// is in progress.
func (p *pair) crawling(ctx context.Context, t *testing.T, tun *tunnel, src, dst *hypervisor.Domain) <-chan error {
	t.Helper()
	content := make([]byte, diskBytes)
	rand.New(rand.NewSource(2)).Read(content)
	p.writeContent(t, src, content)
	addOwnDisks(t, src, dst)
	p.prepare(t, *dst)
	if p.Crawl != nil {
		p.Crawl(p.from)
	}
	begun, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		_, err := p.from.Migrate(ctx, src.ID, hypervisor.MigrateOptions{
			Target: *dst, Tunnel: tun, CopyDisks: []string{"root"}, BandwidthBytesPerSecond: 1 << 20,
			Progress: func(m hypervisor.MigrationProgress) {
				if m.Phase == hypervisor.MigrationCopying && m.TransferredBytes > 0 {
					select {
					case begun <- struct{}{}:
					default:
					}
				}
			},
		})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatalf("the migration ended before its first progress: %v", err)
	case <-patience.After(enough):
		t.Fatal("the migration reported no progress, want its start")
	}
	s, err := p.from.MigrationStatus(p.ctx, src.ID)
	if err != nil || s.Role != hypervisor.MigrationSource || s.State != hypervisor.Running {
		t.Errorf("MigrationStatus of the source = %+v, %v, want role source and state Running", s, err)
	}
	s, err = p.to.MigrationStatus(p.ctx, src.ID)
	if err != nil || s.Role != hypervisor.MigrationTarget || s.State != hypervisor.Incoming || s.Received {
		t.Errorf("MigrationStatus of the target = %+v, %v, want role target and state Incoming, not received", s, err)
	}
	wantCode(t, "a second migration", second(p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: *dst, Tunnel: tun})), api.CodeState)
	wantCode(t, "start of an incoming machine", p.to.Start(p.ctx, src.ID), api.CodeState)
	wantCode(t, "finish of an incomplete machine", p.to.FinishMigration(p.ctx, src.ID), api.CodeState)
	return done
}

func second(_ hypervisor.MigrationResult, err error) error { return err }

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	return patience.Receive(t, enough, "the migration ends", done)
}

func testAbort(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	done := p.crawling(p.ctx, t, p.tunnel(t, src.ID), &src, &dst)
	if err := p.from.AbortMigration(p.ctx, src.ID); err != nil {
		t.Fatalf("AbortMigration: %v", err)
	}
	if err := wait(t, done); err == nil {
		t.Error("an aborted migration succeeded, want an error")
	}
	p.wantStayed(t, src.ID)
	// Another migration must succeed.
	if p.Crawl != nil {
		p.Crawl(nil)
	}
	p.prepare(t, dst)
	if _, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{
		Target: dst, Tunnel: p.tunnel(t, src.ID), CopyDisks: []string{"root"},
	}); err != nil {
		t.Fatal(err)
	}
	p.wantMoved(t, src.ID)
}

func testContextEnds(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	ctx, cancel := context.WithCancel(p.ctx)
	done := p.crawling(ctx, t, p.tunnel(t, src.ID), &src, &dst)
	cancel()
	if err := wait(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("Migrate with a canceled context = %v, want context.Canceled", err)
	}
	p.wantStayed(t, src.ID)
}

func testTunnelCut(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	tun := p.tunnel(t, src.ID)
	done := p.crawling(p.ctx, t, tun, &src, &dst)
	tun.cut()
	if err := wait(t, done); err == nil {
		t.Error("Migrate with a cut tunnel = nil, want an error")
	}
	p.wantStayed(t, src.ID)
}

func testUnprepared(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	if _, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: p.tunnel(t, src.ID)}); err == nil {
		t.Error("Migrate to an unprepared target = nil, want an error")
	}
	p.wantStayed(t, src.ID)
}

// testStranded checks that when the source has ended and the target waits,
// only FinishMigration starts the machine.
func testStranded(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	p.prepare(t, dst)
	p.CrashMigration(p.from)
	_, err := p.from.Migrate(p.ctx, src.ID, hypervisor.MigrateOptions{Target: dst, Tunnel: p.tunnel(t, src.ID)})
	wantCode(t, "a migration that failed at the end", err, api.CodeUnavailable)
	p.source.wantState(t, src.ID, hypervisor.Missing)
	p.target.wantState(t, src.ID, hypervisor.Incoming)
	s, err := p.to.MigrationStatus(p.ctx, src.ID)
	if err != nil || s.Role != hypervisor.MigrationTarget || !s.Received {
		t.Errorf("MigrationStatus of the target = %+v, %v, want role target, received", s, err)
	}
	wantCode(t, "start of an unfinished machine", p.to.Start(p.ctx, src.ID), api.CodeState)
	if err := p.to.FinishMigration(p.ctx, src.ID); err != nil {
		t.Fatalf("FinishMigration: %v", err)
	}
	p.wantMoved(t, src.ID)
}

func testRefused(t *testing.T, p *pair) {
	src, dst := p.booted(t)
	o := hypervisor.MigrateOptions{Target: dst, Tunnel: p.tunnel(t, src.ID)}
	refused := func(what string, code api.Code, change func(*hypervisor.MigrateOptions)) {
		t.Helper()
		o := o
		change(&o)
		wantCode(t, what, second(p.from.Migrate(p.ctx, src.ID, o)), code)
	}
	refused("a vGPU on the target", api.CodeState, func(o *hypervisor.MigrateOptions) { o.Target.VGPUSocket = "/run/vgpu" })
	refused("a missing disk", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.CopyDisks = []string{"other"} })
	refused("a disk twice", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.CopyDisks = []string{"root", "root"} })
	refused("no tunnel", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.Tunnel = nil })
	refused("other disks", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.Target.Disks = nil })
	refused("no screen", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.Target.VNCSocket = "" })
	refused("a negative bandwidth", api.CodeInvalid, func(o *hypervisor.MigrateOptions) { o.BandwidthBytesPerSecond = -1 })
	p.source.wantState(t, src.ID, hypervisor.Running)

	gpu := dst
	gpu.VGPUSocket = "/run/vgpu"
	wantCode(t, "prepare with a vGPU", p.to.PrepareMigration(p.ctx, gpu), api.CodeState)
	at := src
	wantCode(t, "prepare on the node where it runs", p.from.PrepareMigration(p.ctx, at), api.CodeState)
	wantCode(t, "discard on the node where it runs", p.from.DiscardMigration(p.ctx, src.ID), api.CodeState)
	wantCode(t, "finish without a migration", p.to.FinishMigration(p.ctx, src.ID), api.CodeNotFound)
	a, b := net.Pipe()
	defer a.Close()
	wantCode(t, "an unexpected stream", p.to.AcceptMigration(p.ctx, src.ID, hypervisor.StreamLibvirt, b), api.CodeState)
	p.prepare(t, dst)
	a, b = net.Pipe()
	defer a.Close()
	wantCode(t, "an unknown stream", p.to.AcceptMigration(p.ctx, src.ID, "other", b), api.CodeState)

	if err := p.from.Destroy(p.ctx, src.ID); err != nil {
		t.Fatal(err)
	}
	refused("a stopped domain", api.CodeState, func(*hypervisor.MigrateOptions) {})
	if err := p.from.AbortMigration(p.ctx, src.ID); err != nil {
		t.Errorf("AbortMigration without a migration: %v, want nil", err)
	}
	if err := p.from.Undefine(p.ctx, src.ID); err != nil {
		t.Fatal(err)
	}
	refused("a missing domain", api.CodeNotFound, func(*hypervisor.MigrateOptions) {})
}

// tunnel passes streams to the target's AcceptMigration, as two agents do.
type tunnel struct {
	to  Machine
	id  api.InstanceID
	ctx context.Context

	hold direction // blocked once the memory stream is open; 0: none

	mu    sync.Mutex
	conns []net.Conn
	flows bool // the memory stream is open
	off   bool
	wg    sync.WaitGroup
}

// tunnel returns a tunnel for one machine; its streams must have ended when
// the test has.
func (p *pair) tunnel(t *testing.T, id api.InstanceID) *tunnel {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.ctx))
	tun := &tunnel{to: p.to, id: id, ctx: ctx}
	t.Cleanup(func() {
		defer cancel()
		ended := make(chan struct{})
		go func() { tun.wg.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-patience.After(enough):
			t.Error("streams of the tunnel are still open at the end of the test, want none")
			tun.cut()
		}
	})
	return tun
}

func (n *tunnel) Open(_ context.Context, s hypervisor.Stream) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.off {
		return nil, errors.New("the tunnel is cut")
	}
	var a net.Conn
	a, b := net.Pipe()
	if s == hypervisor.StreamLibvirt {
		a = &held{Conn: a, tunnel: n, closed: make(chan struct{})}
	}
	n.flows = n.flows || s == hypervisor.StreamMemory
	n.conns = append(n.conns, a, b)
	n.wg.Add(1)
	go func() {
		defer n.wg.Done()
		_ = n.to.AcceptMigration(n.ctx, n.id, s, b)
	}()
	return a, nil
}

func (n *tunnel) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = true
	for _, c := range n.conns {
		_ = c.Close()
	}
}
