// Package client has the clients of gpud: Control for the node agent, Host for
// workers.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// Control is a client of gpud's control API. Errors that gpud returns are
// *wire.Error.
type Control struct{ http *http.Client }

// maxAnswer is the largest answer, in bytes.
const maxAnswer = 64 << 20

// NewControl returns a client of the gpud that listens at socket. It connects on
// first use.
func NewControl(socket string) *Control {
	return &Control{&http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			},
			MaxIdleConns: 4, IdleConnTimeout: 30 * time.Second,
		},
	}}
}

// Close closes idle connections.
func (c *Control) Close() { c.http.CloseIdleConnections() }

// Health returns gpud's health; a gpud with a problem answers with OK false.
func (c *Control) Health(ctx context.Context) (h wire.Health, err error) {
	return h, c.do(ctx, http.MethodGet, "/v1/healthz", nil, &h)
}

// GPUs lists the node's cards, sorted by ID.
func (c *Control) GPUs(ctx context.Context) (all []wire.GPU, err error) {
	return all, c.do(ctx, http.MethodGet, "/v1/gpus", nil, &all)
}

// UnusableGPUs lists the machine's NVIDIA cards that cannot be used, sorted by
// address.
func (c *Control) UnusableGPUs(ctx context.Context) (all []wire.UnusableGPU, err error) {
	return all, c.do(ctx, http.MethodGet, "/v1/unusable-gpus", nil, &all)
}

// VGPUs lists the vGPUs with their usage, sorted by ID. Usage never decreases.
func (c *Control) VGPUs(ctx context.Context) (all []wire.VGPU, err error) {
	return all, c.do(ctx, http.MethodGet, "/v1/vgpus", nil, &all)
}

// VGPUsAndDeleted also lists the vGPUs deleted in the last 24 hours, with their last
// usage.
func (c *Control) VGPUsAndDeleted(ctx context.Context) (all []wire.VGPU, err error) {
	return all, c.do(ctx, http.MethodGet, "/v1/vgpus?deleted=true", nil, &all)
}

// Now returns the cards and vGPUs at one point in time, for charts; see wire.Now.
func (c *Control) Now(ctx context.Context) (n wire.Now, err error) {
	return n, c.do(ctx, http.MethodGet, "/v1/now", nil, &n)
}

// PutGPU changes the settings of a card.
func (c *Control) PutGPU(ctx context.Context, id string, spec wire.GPUSpec) error {
	var out wire.GPUSpec
	return c.do(ctx, http.MethodPut, "/v1/gpus/"+url.PathEscape(id), spec, &out)
}

// PutVGPU creates or updates the vGPU to match the spec; it is idempotent. The
// answer has the token for its workers.
func (c *Control) PutVGPU(ctx context.Context, id string, spec wire.VGPUSpec) (v wire.VGPU, err error) {
	return v, c.do(ctx, http.MethodPut, "/v1/vgpus/"+url.PathEscape(id), spec, &v)
}

// DeleteVGPU ends the vGPU's workers, removes it and returns it with its last
// usage. It is idempotent. For an unknown ID the error has wire.CodeNotFound.
func (c *Control) DeleteVGPU(ctx context.Context, id string) (v wire.VGPU, err error) {
	return v, c.do(ctx, http.MethodDelete, "/v1/vgpus/"+url.PathEscape(id), nil, &v)
}

func (c *Control) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gpud"+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("gpud: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		var e wire.Error
		if json.Unmarshal(b, &e) == nil && e.Code != "" {
			return &e
		}
		if _, isHealth := out.(*wire.Health); !isHealth {
			return fmt.Errorf("gpud: %s %s: %s", method, path, resp.Status)
		}
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("gpud: decode response to %s %s: %w", method, path, err)
	}
	return nil
}
