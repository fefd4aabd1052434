package dmcrypttest

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/basalt-gpu/basalt/sds/dmcrypt"
)

// ErrKilled is returned by Dying.
var ErrKilled = errors.New("killed")

// All is everything that is done with encrypted devices.
type All interface {
	Devices
	Label(ctx context.Context, device string, h dmcrypt.Header) error
	Shred(device string) error
}

// Dying has the devices of a process that is killed before the call after Left others,
// or, if that is Format, in the middle of it.
type Dying struct {
	All
	Kill context.CancelFunc // ends the context of everything that the process does
	Left int                // below 0: it was killed
}

func (d *Dying) step() error {
	if d.Left--; d.Left < 0 {
		d.Kill()
		return ErrKilled
	}
	return nil
}

// Format is killed when it has written the first sector.
func (d *Dying) Format(ctx context.Context, device string, h dmcrypt.Header, key []byte, scratch string) error {
	if d.step() != nil {
		return errors.Join(ErrKilled, writeStart(device, h, key, scratch, d.All))
	}
	return d.All.Format(ctx, device, h, key, scratch) //nolint:wrapcheck // it names the device
}

// writeStart writes the first sector of a header.
func writeStart(device string, h dmcrypt.Header, key []byte, scratch string, d Devices) error {
	file := scratch + ".whole"
	defer os.Remove(file)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(file, 2*dmcrypt.HeaderBytes); err != nil {
		return err
	}
	if err := d.Format(context.Background(), file, h, key, scratch); err != nil {
		return err //nolint:wrapcheck // it names the device
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	dev, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.CopyN(dev, f, 512)
	return errors.Join(err, dev.Close())
}

// Label returns ErrKilled if the process is killed.
func (d *Dying) Label(ctx context.Context, device string, h dmcrypt.Header) error {
	return errors.Join(d.step(), unless(d, func() error { return d.All.Label(ctx, device, h) }))
}

// Open returns ErrKilled if the process is killed.
func (d *Dying) Open(ctx context.Context, device, name string, key []byte) error {
	return errors.Join(d.step(), unless(d, func() error { return d.All.Open(ctx, device, name, key) }))
}

// Close returns ErrKilled if the process is killed.
func (d *Dying) Close(ctx context.Context, name string) error {
	return errors.Join(d.step(), unless(d, func() error { return d.All.Close(ctx, name) }))
}

// Shred returns ErrKilled if the process is killed.
func (d *Dying) Shred(device string) error {
	return errors.Join(d.step(), unless(d, func() error { return d.All.Shred(device) }))
}

// Find returns ErrKilled if the process is killed.
func (d *Dying) Find(ctx context.Context, device, name string) (dmcrypt.Mapping, error) {
	if err := d.step(); err != nil {
		return dmcrypt.Mapping{}, err
	}
	return d.All.Find(ctx, device, name) //nolint:wrapcheck // it names the device
}

// unless calls f in a process that lives.
func unless(d *Dying, f func() error) error {
	if d.Left < 0 {
		return nil
	}
	return f()
}
