package vhostgpu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/vhostuser"
)

// HandoverVersion is the version of the state that HandOver writes and TakeOver
// reads. A change that an older program would misread must increment it; TakeOver
// must still read the previous version.
const HandoverVersion = 1

// serverState is the whole server between two events. Descriptors are numbers,
// which stay the same across exec. It is passed on as JSON in a memfd.
type serverState struct {
	Version   int
	Path      string
	Listen    int // -1 when connected
	Stream    *vhostuser.StreamState
	Session   *vhostuser.SessionState
	Resources []resourceState
	Contexts  []contextState
	Ending    []workerState
	Owed      [queueCount][]held
	Broken    [queueCount]bool
	Seen      *Observed // nil: unknown
}

type resourceState struct {
	ID       uint32
	Backing  []span
	Contexts map[uint32]bool
	Release  []held
	Unref    bool
}

type contextState struct {
	ID          uint32
	Name        string
	Dead        *death
	Waits       []held
	WakePending bool
	Region0     uint32
	Worker      *workerState
}

type workerState struct {
	PID      int
	Stream   *vhostuser.StreamState
	Regions  []pinState
	Acks     map[uint32]int
	Deadline time.Time
	Killed   bool
}

type pinState struct {
	Number, Resource uint32
	Dropping         bool
}

// HandOver replaces this program by the one at binary, in the same process, which
// continues where this one stopped. It returns only if that failed; then nothing
// has changed. args are the program's own arguments, in addition to that of the
// handed-over state; keep are the descriptors that they refer to.
func (s *Server) HandOver(binary string, args []string, keep ...int) error {
	if err := checkVersion(binary); err != nil {
		return err
	}
	st := s.state()
	file, err := writeState(st)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(file) }()
	fds := append(append(st.fds(), file), keep...)
	// Another request for an upgrade must not kill the next program before it
	// handles signals; the signal is delivered then.
	usr2, old := unix.Sigset_t{Val: [16]uint64{1 << (uint(unix.SIGUSR2) - 1)}}, unix.Sigset_t{}
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &usr2, &old)
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	if err = inherit(fds, true); err == nil {
		argv := append([]string{binary}, args...)
		argv = append(argv, "--handover-fd", fmt.Sprint(file))
		err = syscall.Exec(binary, argv, os.Environ())
	}
	_ = inherit(fds, false)
	return fmt.Errorf("execute %s: %w", binary, err)
}

// checkVersion asks the new program whether it can take over: after the exec
// there is no way back.
func checkVersion(binary string) error {
	out, err := exec.Command(binary, "--handover-version").Output()
	if err != nil {
		return fmt.Errorf("%s --handover-version: %w", binary, err)
	}
	if v := strings.TrimSpace(string(out)); v != fmt.Sprint(HandoverVersion) {
		return fmt.Errorf("%s supports handover version %q, want %d", binary, v, HandoverVersion)
	}
	return nil
}

// inherit sets whether the descriptors survive an exec; it returns the first error.
func inherit(fds []int, yes bool) error {
	flag := unix.FD_CLOEXEC
	if yes {
		flag = 0
	}
	var first error
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func writeState(st serverState) (int, error) {
	b, err := json.Marshal(st)
	if err != nil {
		return -1, err
	}
	fd, err := unix.MemfdCreate("basalt-vgpu-state", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create memory file: %w", err)
	}
	for off := 0; off < len(b); {
		n, err := unix.Pwrite(fd, b[off:], int64(off))
		if err != nil {
			_ = unix.Close(fd)
			return -1, fmt.Errorf("write state: %w", err)
		}
		off += n
	}
	return fd, nil
}

func (s *Server) state() serverState {
	d := s.Device
	st := serverState{Version: HandoverVersion, Path: s.path, Listen: s.listen}
	if s.stream != nil {
		ss := s.stream.State()
		st.Stream = &ss
	}
	if s.Session != nil {
		ss := s.Session.State()
		st.Session = &ss
	}
	if d.seen.known {
		st.Seen = &d.seen.now
	}
	for i := range d.queues {
		st.Owed[i], st.Broken[i] = d.queues[i].owed, d.queues[i].broken
	}
	for _, r := range d.resources {
		st.Resources = append(st.Resources, resourceState{r.ID, r.Backing, r.Contexts, r.Release, r.Unref})
	}
	for _, c := range d.contexts {
		cs := contextState{c.id, c.name, c.dead, c.waits, c.wakePending, c.region0, nil}
		if c.worker != nil {
			cs.Worker = c.worker.state(d)
		}
		st.Contexts = append(st.Contexts, cs)
	}
	for _, w := range d.ending {
		st.Ending = append(st.Ending, *w.state(d))
	}
	return st
}

func (w *worker) state(d *Device) *workerState {
	ws := &workerState{PID: w.pid, Acks: w.acks, Deadline: w.deadline, Killed: w.killed}
	if w.stream != nil {
		ss := w.stream.State()
		ws.Stream = &ss
	}
	for _, p := range w.regions {
		// A resource from before a reset does not belong to the guest any more:
		// no command waits for it.
		if d.resources[p.resource.ID] == p.resource {
			ws.Regions = append(ws.Regions, pinState{p.Number, p.resource.ID, p.Dropping})
		}
	}
	return ws
}

// fds returns all descriptors that the next program needs.
func (st *serverState) fds() (fds []int) {
	if st.Listen >= 0 {
		fds = append(fds, st.Listen)
	}
	if st.Stream != nil {
		fds = append(fds, st.Stream.FDs()...)
	}
	if st.Session != nil {
		fds = append(fds, st.Session.FDs()...)
	}
	for _, c := range st.Contexts {
		if c.Worker != nil && c.Worker.Stream != nil {
			fds = append(fds, c.Worker.Stream.FDs()...)
		}
	}
	return fds
}

// TakeOver continues the server whose state HandOver stored in file.
func TakeOver(file int, spawner Spawner, limits Limits, log *slog.Logger) (*Server, error) {
	st, err := readState(file)
	if err != nil {
		return nil, err
	}
	if err := inherit(st.fds(), false); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s, err := newServer(spawner, limits, log)
	if err != nil {
		return nil, err
	}
	s.path, s.listen = st.Path, st.Listen
	if s.listen >= 0 {
		return s, s.loop.Add(s.listen, unix.EPOLLIN, func(uint32) { s.accept() })
	}
	if st.Stream == nil || st.Session == nil {
		return nil, errors.New("read state: neither listening nor connected")
	}
	if err := s.Device.restore(st); err != nil {
		return nil, err
	}
	if s.Session, err = vhostuser.RestoreSession(s.Device, *st.Session); err != nil {
		return nil, fmt.Errorf("restore the session of the front-end: %w", err)
	}
	for i := range st.Broken {
		s.Device.queues[i].broken = st.Broken[i]
	}
	s.attach(st.Stream.FD, st.Stream)
	log.Info("took over from the previous program", "contexts", len(st.Contexts))
	return s, nil
}

func readState(file int) (st serverState, err error) {
	f := os.NewFile(uintptr(file), "state")
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<32))
	if err != nil {
		return st, fmt.Errorf("read state: %w", err)
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&st); err != nil {
		return st, fmt.Errorf("read state: %w", err)
	}
	if st.Version != HandoverVersion {
		return st, fmt.Errorf("state has version %d, want %d", st.Version, HandoverVersion)
	}
	return st, nil
}

// restore restores the state of an empty device. Queues are restored afterwards,
// with the session.
func (d *Device) restore(st serverState) error {
	for i := range d.queues {
		d.queues[i].owed = st.Owed[i]
	}
	if st.Seen != nil {
		d.seen = observer{now: *st.Seen, known: true}
	}
	for _, r := range st.Resources {
		res := &resource{ID: r.ID, Backing: r.Backing, Contexts: r.Contexts, Release: r.Release, Unref: r.Unref}
		if res.Contexts == nil {
			res.Contexts = map[uint32]bool{}
		}
		for _, s := range r.Backing {
			res.Size += s.Length
		}
		d.resources[r.ID] = res
		d.extents += len(r.Backing)
		d.attachments += len(r.Contexts)
	}
	for _, c := range st.Contexts {
		gc := &guestContext{id: c.ID, name: c.Name, dead: c.Dead, waits: c.Waits, wakePending: c.WakePending, region0: c.Region0}
		d.contexts[c.ID] = gc
		if c.Worker != nil {
			w, err := d.restoreWorker(*c.Worker, c.ID)
			if err != nil {
				return err
			}
			gc.worker = w
		}
	}
	for _, ws := range st.Ending {
		w, err := d.restoreWorker(ws, 0)
		if err != nil {
			return err
		}
		d.ending = append(d.ending, w)
	}
	return nil
}

func (d *Device) restoreWorker(ws workerState, context uint32) (*worker, error) {
	w := &worker{context: context, pid: ws.PID, pidfd: -1, acks: ws.Acks, deadline: ws.Deadline, killed: ws.Killed}
	for _, p := range ws.Regions {
		if res := d.resources[p.Resource]; res != nil {
			res.pins++
			w.regions = append(w.regions, pin{p.Number, res, p.Dropping})
		}
	}
	if ws.Stream != nil {
		var err error
		if w.stream, err = newCarrier(ws.Stream.FD); err != nil {
			return nil, err
		}
		w.stream.Restore(*ws.Stream)
	}
	return w, d.watch(w)
}
