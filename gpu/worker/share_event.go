package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// sharedEvent is an event that several sessions of a vGPU share. They share a page with
// two numbers: how often the event was recorded, by any session, and the last of these
// records that is done. A wait is for the number of records at its beginning.
//
// The page may contain anything, because another session's worker may be compromised.
// Then waits end early, or with their session.
type sharedEvent struct {
	token ShareToken
	made  *madeShare // nil: another session created it
	page  *shm.Mapping
	users atomic.Int64 // number of uses of page
}

// Offsets in the page. gpud reads and writes them too when a session ends.
const (
	eventRecorded = 0
	eventDone     = 8
	eventPage     = abi.PageSize
)

// leave ends a use of the page.
func (e *sharedEvent) leave() {
	if e.users.Add(-1) == 0 {
		e.page.Close()
	}
}

// record counts a record and returns a function that marks it as done.
func (e *sharedEvent) record() (done func()) {
	e.users.Add(1)
	n := e.page.Next64(eventRecorded)
	return func() {
		for {
			old := e.page.Load64(eventDone)
			if old >= n || e.page.CAS64(eventDone, old, n) {
				break
			}
		}
		e.leave()
	}
}

// latest returns the number of the last record.
func (e *sharedEvent) latest() uint64 { return e.page.Load64(eventRecorded) }

func (e *sharedEvent) done(n uint64) bool { return e.page.Load64(eventDone) >= n }

const (
	firstEventLook = 20 * time.Microsecond // the first pause, which doubles each time
	lastEventLook  = time.Millisecond      // the longest pause
)

// await waits until record n is done, or the session ends.
func (e *sharedEvent) await(ctx context.Context, n uint64) error {
	for pause := firstEventLook; !e.done(n); pause = min(2*pause, lastEventLook) {
		if ctx.Err() != nil {
			return abi.ErrUnavailable
		}
		time.Sleep(pause)
	}
	return nil
}

// eventShare handles EventShare.
func (s *Session) eventShare(c *command) error {
	handle := abi.DecodeEventShare(c.argBytes).Event
	e, err := s.eventOf(c, handle)
	if err != nil {
		return err
	}
	if o := e.shared; o != nil {
		if o.made == nil {
			return abi.ErrInvalidHandle // only its creator can share it
		}
		c.value0, c.value1 = o.token[0], o.token[1]
		return o.made.failed
	}
	if err := s.sharing.room(); err != nil {
		return err
	}
	file, err := shm.NewFile("event", eventPage)
	if err != nil {
		return fmt.Errorf("%w: %w", abi.ErrOutOfMemory, err)
	}
	page, err := shm.Map([]shm.Extent{{FD: int(file.Fd()), Length: eventPage}})
	if err != nil {
		return errors.Join(abi.ErrOutOfMemory, err, file.Close())
	}
	m := &madeShare{token: newShareToken(), moved: true}
	o := &sharedEvent{token: m.token, made: m, page: page}
	o.users.Add(1)
	asked := s.ask(c, func() error {
		err := s.host.Share(m.token, 0)
		if err == nil {
			err = s.host.Publish(m.token, Shared{Size: 0, File: file})
		}
		return errors.Join(err, file.Close())
	}, func(c *command, err error) error {
		m.ready, m.failed = true, err
		c.value0, c.value1 = m.token[0], m.token[1]
		return err
	})
	if !errors.Is(asked, errLater) {
		o.leave()
		return errors.Join(asked, file.Close())
	}
	e.shared = o
	s.sharing.made[m.token] = m
	s.eventRecorded(e) // all earlier records count as one
	return asked
}

// eventRecorded counts the record that the driver has just been passed.
func (s *Session) eventRecorded(e *eventObject) {
	if e.shared == nil {
		return
	}
	done := e.shared.record()
	if err := e.ctx.driver.EventNotify(e.event, func(error) { done() }); err != nil {
		done()
	}
}

// eventOpen handles EventOpen. The session's own driver event is for its own
// records.
func (s *Session) eventOpen(c *command) error {
	a := abi.DecodeEventOpen(c.argBytes)
	ctx, err := s.context(c, a.Ctx)
	if err != nil {
		return err
	}
	token := ShareToken{a.Token0, a.Token1}
	if s.sharing.made[token] != nil {
		return abi.ErrInvalidContext
	}
	if err := s.handles.free(a.Event, 1); err != nil {
		return err
	}
	return s.openShared(c, token, func(_ *command, m Shared) error { return s.haveEvent(ctx, a.Event, token, m) })
}

// haveEvent maps the page of another session's event, on the issuer.
func (s *Session) haveEvent(ctx *contextObject, handle uint64, token ShareToken, m Shared) error {
	if err := shm.CheckFile(m.File, eventPage); err != nil || m.Size != 0 {
		return errors.Join(abi.ErrInvalidHandle, err)
	}
	page, err := shm.Map([]shm.Extent{{FD: int(m.File.Fd()), Length: eventPage}})
	if err != nil {
		return err
	}
	if err := s.enterEvent(ctx, handle, token, page); err != nil {
		page.Close()
		return err
	}
	return nil
}

// enterEvent creates an event for a page, on the issuer.
func (s *Session) enterEvent(ctx *contextObject, handle uint64, token ShareToken, page *shm.Mapping) error {
	if ctx.dead || s.releasing {
		return abi.ErrInvalidContext
	}
	if err := s.handles.free(handle, 1); err != nil {
		return err
	}
	event, err := ctx.driver.EventCreate(EventDisableTiming)
	if err != nil {
		return err
	}
	o := &sharedEvent{token: token, page: page}
	o.users.Add(1)
	s.handles.add(handle, ctx, &eventObject{ctx: ctx, event: event, shared: o})
	return nil
}

// eventAwait handles EventSynchronize for a shared event: it waits for the latest record
// at this time.
func (s *Session) eventAwait(c *command, e *sharedEvent) error {
	n := e.latest()
	if e.done(n) {
		return nil
	}
	e.users.Add(1)
	asked := s.ask(c, func() error {
		defer e.leave()
		return e.await(s.gate.ctx, n)
	}, func(_ *command, err error) error { return err })
	if !errors.Is(asked, errLater) {
		e.leave()
	}
	return asked
}

// dropEvent releases the session's part of a shared event that is destroyed.
func (s *Session) dropEvent(o *sharedEvent) {
	if o.made != nil {
		s.unshare(o.made)
	} else {
		s.unuse(o.token)
	}
	o.leave()
}

// eventsOf returns the shared events of a context that is being destroyed.
func (s *Session) eventsOf(ctx *contextObject) (list []*sharedEvent) {
	for handle := range ctx.handles {
		if e, ok := s.handles.objects[handle].(*eventObject); ok && e.shared != nil {
			list = append(list, e.shared)
		}
	}
	return list
}
