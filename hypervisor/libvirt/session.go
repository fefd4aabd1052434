package libvirt

import (
	"errors"
	"sync"

	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/hypervisor"
)

// session is one connection to libvirtd.
type session struct {
	*lv.Connect
	users     sync.WaitGroup // calls that use it; Driver.mu is held to add one
	lost      chan struct{}  // closed when the connection is lost
	callbacks []int
}

var eventLoop = sync.OnceValue(func() error {
	// Once per process, and before the first connection.
	if err := lv.EventRegisterDefaultImpl(); err != nil {
		return err
	}
	go func() {
		for {
			_ = lv.EventRunDefaultImpl() // an error concerns one iteration only
		}
	}()
	return nil
})

func runEventLoop() error { return eventLoop() }

// connect opens a session that delivers events.
func (d *Driver) connect() (*session, error) {
	conn, err := lv.NewConnect(d.opt.URI)
	if err != nil {
		return nil, err
	}
	s := &session{Connect: conn, lost: make(chan struct{})}
	lost := sync.OnceFunc(func() { close(s.lost) })
	err = errors.Join(
		conn.RegisterCloseCallback(func(*lv.Connect, lv.ConnectCloseReason) { lost() }),
		supported(conn.SetKeepAlive(keepAlive, keepAliveLost)),
		d.register(s),
	)
	if err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// drop closes the session when its last user has returned.
func (s *session) drop() {
	go func() {
		s.users.Wait()
		for _, id := range s.callbacks {
			_ = s.DomainEventDeregister(id) // the connection may be lost
		}
		_ = s.UnregisterCloseCallback()
		_, _ = s.Close()
	}()
}

// register registers for events. The callbacks run on the event loop and must
// not call libvirt, except for values stored in the domain object.
func (d *Driver) register(s *session) error {
	send := func(dom *lv.Domain, e hypervisor.Event) {
		name, err := dom.GetName()
		if err != nil {
			return
		}
		if id, ok := idOf(name); ok && e.Type != "" {
			e.ID = id
			d.events.Send(e)
		}
	}
	keep := func(id int, err error) error {
		if err == nil {
			s.callbacks = append(s.callbacks, id)
		}
		return err
	}
	return errors.Join(
		keep(s.DomainEventLifecycleRegister(nil, func(_ *lv.Connect, dom *lv.Domain, e *lv.DomainEventLifecycle) {
			send(dom, lifecycle(e.Event, e.Detail))
		})),
		keep(s.DomainEventRebootRegister(nil, func(_ *lv.Connect, dom *lv.Domain) {
			send(dom, hypervisor.Event{Type: hypervisor.EventRebooted})
		})),
		keep(s.DomainEventAgentLifecycleRegister(nil, func(_ *lv.Connect, dom *lv.Domain, e *lv.DomainEventAgentLifecycle) {
			if e.State == lv.CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED {
				send(dom, hypervisor.Event{Type: hypervisor.EventAgentUp})
			} else {
				send(dom, hypervisor.Event{Type: hypervisor.EventAgentDown})
			}
		})),
	)
}

// supported maps ERR_NO_SUPPORT to nil: a driver inside this process
// (test:///) has no connection that could be lost.
func supported(err error) error {
	var e lv.Error
	if errors.As(err, &e) && e.Code == lv.ERR_NO_SUPPORT {
		return nil
	}
	return err
}
