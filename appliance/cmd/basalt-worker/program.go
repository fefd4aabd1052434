package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
)

// program is the connected parts of a worker.
type program struct {
	session *worker.Session
	driver  worker.Driver
	node    *client.Host     // nil without gpud
	cache   *codecache.Cache // nil: none
}

func newProgram(ctx context.Context, o options, log *slog.Logger) (*program, error) {
	conn, err := carrierConn(o.carrier)
	if err != nil {
		return nil, err
	}
	var token string
	if o.token >= 0 {
		if token, err = wire.TakeToken(o.token); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("read the token of the vGPU: %w", err)
		}
	}
	p := &program{}
	if o.cache >= 0 {
		if p.cache, err = codecache.Open(o.cache); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("open the cache of compiled code: %w", err)
		}
	}
	options := worker.Options{Log: log}
	var host worker.Host
	device := wire.Device{Driver: o.driver, Name: o.device}
	if o.limits != nil {
		host, device.VRAMBytes = worker.NewLocalHost(*o.limits), o.limits.VRAM
	} else {
		if p.node, err = client.DialWorker(ctx, o.gpud, o.vgpu, client.Options{Token: token, Log: log}); err != nil {
			_ = conn.Close()
			return nil, errors.Join(err, p.Close())
		}
		host, device = p.node, override(p.node.Device(), o)
		options.OnHello = func(h abi.Hello) { p.node.SetProcess(h.PID, h.Name) }
	}
	if p.driver, err = openDriver(device, p.cache); err == nil {
		p.session, err = worker.NewSession(conn, p.driver, host, options)
	}
	if err != nil {
		_ = conn.Close()
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func override(d wire.Device, o options) wire.Device {
	if o.driver != "" {
		d.Driver = o.driver
	}
	if o.device != "" {
		d.Name = o.device
	}
	return d
}

func carrierConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "carrier")
	if f == nil {
		return nil, fmt.Errorf("--carrier-fd %d: want an open descriptor", fd)
	}
	defer f.Close() // the connection has its own
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("--carrier-fd %d: %w", fd, err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, fmt.Errorf("--carrier-fd %d: want a Unix socket", fd)
	}
	return u, nil
}

// Run serves the guest until it ends the session.
func (p *program) Run(ctx context.Context) error { return p.session.Run(ctx) }

// Free closes the device.
func (p *program) Free() error {
	if p.driver == nil {
		return nil
	}
	d := p.driver
	p.driver = nil
	return d.Close()
}

// Await waits for gpud to return if the connection is lost, so that usage is not lost with this
// process.
func (p *program) Await(ctx context.Context) error {
	if p.node == nil {
		return nil
	}
	if err := p.node.Part(ctx); err != nil {
		return fmt.Errorf("wait for gpud: %w", err)
	}
	return nil
}

// Close frees the device and ends the connection to gpud.
func (p *program) Close() error {
	err := p.Free()
	if p.node != nil {
		err = errors.Join(err, p.node.Close())
	}
	if p.cache != nil {
		err = errors.Join(err, p.cache.Close())
	}
	return err
}
