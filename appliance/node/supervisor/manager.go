package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/godbus/dbus/v5"
)

// manager queries systemd about units (org.freedesktop.systemd1(5)). Nodes query
// often: a systemctl process for each query costs far more than the query, and
// makes systemd return everything about the unit.
type manager struct {
	dial func() (*dbus.Conn, error)

	mu   sync.Mutex
	conn *dbus.Conn // nil if not connected
}

// systemManager returns a manager of the system's systemd, for root, at its own
// socket, which needs no dbus-daemon.
func systemManager() *manager {
	return &manager{dial: func() (*dbus.Conn, error) { return dbus.Dial("unix:path=/run/systemd/private") }}
}

// state returns the state of a unit. It reconnects once if systemd has closed the
// connection, as when systemd was restarted.
func (m *manager) state(ctx context.Context, unit string) (state, error) {
	s, err := m.ask(ctx, unit)
	if errors.Is(err, dbus.ErrClosed) {
		s, err = m.ask(ctx, unit)
	}
	if err != nil {
		err = fmt.Errorf("ask systemd for %s: %w", unit, err)
	}
	return s, err
}

func (m *manager) ask(ctx context.Context, unit string) (state, error) {
	conn, err := m.connect()
	if err != nil {
		return state{}, err
	}
	var units []struct {
		Name, Description, Load, Active, Sub, Following string
		Path                                            dbus.ObjectPath
		Job                                             uint32
		JobType                                         string
		JobPath                                         dbus.ObjectPath
	}
	call := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		CallWithContext(ctx, "org.freedesktop.systemd1.Manager.ListUnitsByNames", 0, []string{unit})
	if err := call.Store(&units); err != nil {
		return state{}, err
	}
	if len(units) != 1 {
		return state{}, fmt.Errorf("got %d units, want one", len(units))
	}
	u := units[0]
	return state{loaded: u.Load != "not-found", active: u.Active, sub: u.Sub, description: u.Description}, nil
}

// connect returns the connection, and opens one if there is none.
func (m *manager) connect() (*dbus.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && m.conn.Connected() {
		return m.conn, nil
	}
	conn, err := m.dial()
	if err != nil {
		return nil, err
	}
	if err := conn.Auth(nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m.conn = conn
	return conn, nil
}
