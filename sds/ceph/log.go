package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
)

// kind is a kind of object that has a log.
type kind string

const (
	images  kind = "image"
	volumes kind = "volume"
)

// object returns the RADOS object with the log.
func (k kind) object(id string) string { return "basalt." + string(k) + "." + id }

func (k kind) notFound(id string) error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist in this store", k, id)
}

// read reads the log. An object that was never created has an empty one.
func (d *Driver) read(ctx context.Context, k kind, id string) (state, error) {
	raw, err := d.rados(ctx, nil, "get", k.object(id), "-")
	if command.Is(err, syscall.ENOENT) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	if len(raw) > maxLog {
		return state{}, fmt.Errorf("the log of %s %s is too long: %d bytes", k, id, len(raw))
	}
	s, err := fold(raw)
	if err != nil {
		return state{}, fmt.Errorf("%s %s: %w", k, id, err)
	}
	return s, nil
}

// find is read for an object that must exist.
func (d *Driver) find(ctx context.Context, k kind, id string) (state, error) {
	s, err := d.read(ctx, k, id)
	if err == nil && s.made == nil {
		err = k.notFound(id)
	}
	return s, err
}

// write appends a line to the log atomically, and reads the resulting state:
// another's line may have been first.
func (d *Driver) write(ctx context.Context, k kind, id string, r record) (state, error) {
	r.Version, r.At = recordVersion, d.opt.Now().UnixMilli()
	line, err := json.Marshal(r)
	if err != nil {
		return state{}, err
	}
	if _, err := d.rados(ctx, bytes.NewReader(append(line, '\n')), "append", k.object(id), "-"); err != nil {
		return state{}, err
	}
	return d.read(ctx, k, id)
}

// void marks a disk of a dead process that no log names as void, before it is
// removed: the line that names it may still be pending, in an OSD's queue or
// in a program that was frozen.
func (d *Driver) void(ctx context.Context, k kind, id, disk string) (state, error) {
	r := record{Do: void, Disk: strings.TrimSuffix(disk, sentMark)}
	if k == images {
		r.Sent = sent(r.Disk)
	}
	if err := d.mark(ctx, k, id); err != nil {
		return state{}, err
	}
	return d.write(ctx, k, id, r)
}

// remove appends the deletion.
func (d *Driver) remove(ctx context.Context, k kind, id string) (state, error) {
	if err := d.mark(ctx, k, id); err != nil {
		return state{}, err
	}
	return d.write(ctx, k, id, record{Do: remove})
}
