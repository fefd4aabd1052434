package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/sds"
)

// exporter writes content, and returns err after it.
type exporter struct {
	content string
	err     error
}

func (e exporter) ExportVolume(_ context.Context, _ api.NodeID, r agent.VolumeRequest, w io.Writer, begin func(sds.Volume)) error {
	if e.content == "" {
		return e.err
	}
	begin(sds.Volume{ID: r.Volume, Image: "img-1"})
	_, err := io.WriteString(w, e.content)
	if err == nil {
		err = e.err
	}
	return err
}

// TestServeVolume checks that an error before the content is returned as such, and that
// content which ends early cannot be taken for a complete volume.
func TestServeVolume(t *testing.T) {
	get := func(e exporter) (*http.Response, []byte, error) {
		t.Helper()
		s := httptest.NewServer(serveVolume(e))
		defer s.Close()
		resp, err := s.Client().Get(s.URL + pathVolume + "?migration=mig-1&volume=vol-1")
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, body, err
	}
	resp, body, err := get(exporter{content: "content"})
	var about sds.Volume
	if err != nil || resp.StatusCode != http.StatusOK || string(body) != "content" || json.Unmarshal([]byte(resp.Header.Get(volumeHeader)), &about) != nil || about.ID != "vol-1" || about.Image != "img-1" {
		t.Errorf("a complete volume: %v, body %q, volume %+v, error %v; want content, vol-1 and img-1", resp, body, about, err)
	}
	resp, body, err = get(exporter{err: api.Errorf(api.CodeForbidden, "not yours")})
	var said api.Error
	if err != nil || json.Unmarshal(body, &said) != nil || said.Code != api.CodeForbidden || resp.StatusCode == http.StatusOK {
		t.Errorf("refused: %v, body %q, error %v; want code %s", resp, body, err, api.CodeForbidden)
	}
	if resp, body, err = get(exporter{content: "cont", err: io.ErrUnexpectedEOF}); err == nil {
		t.Errorf("content that ends early: %v, body %q and no error, want an error", resp, body)
	}
}
