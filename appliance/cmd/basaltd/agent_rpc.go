package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/appliance/node/fence"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// Paths and headers of the calls between agents.
const (
	pathPrepare  = "/agent/migration/prepare"
	pathFinish   = "/agent/migration/finish"
	pathCopy     = "/agent/migration/copy"
	pathVolume   = "/agent/migration/volume"
	streamTunnel = "migration"
	pathImage    = "/agent/images/"
	// imageHeader describes the image whose bytes are the body.
	imageHeader = "Basalt-Image"
	// volumeHeader describes the volume whose content is the body.
	volumeHeader = "Basalt-Volume"
	// tunnelHeader is the agent.TunnelRequest of a stream.
	tunnelHeader = "Basalt-Tunnel"
)

// agentRPC implements agent.Peers and agent.Remote.
type agentRPC struct{ client *transport.Client }

func (n agentRPC) PrepareMigration(ctx context.Context, target api.NodeID, r agent.PrepareRequest) (out agent.PrepareReply, err error) {
	return out, n.client.Call(ctx, target, http.MethodPost, pathPrepare, r, &out)
}

func (n agentRPC) FinishMigration(ctx context.Context, target api.NodeID, r agent.FinishRequest) (out agent.FinishReply, err error) {
	return out, n.client.Call(ctx, target, http.MethodPost, pathFinish, r, &out)
}

func (n agentRPC) CopyProgress(ctx context.Context, target api.NodeID, r agent.CopyRequest) (out agent.CopyReply, err error) {
	return out, n.client.Call(ctx, target, http.MethodPost, pathCopy, r, &out)
}

func (n agentRPC) OpenTunnel(ctx context.Context, target api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return n.client.Stream(ctx, target, streamTunnel, http.Header{tunnelHeader: {string(raw)}})
}

func (n agentRPC) FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	return fetch[sds.Image](ctx, n.client, from, pathImage+string(id), imageHeader)
}

func (n agentRPC) FetchVolume(ctx context.Context, source api.NodeID, r agent.VolumeRequest) (io.ReadCloser, sds.Volume, error) {
	q := url.Values{"migration": {string(r.Migration)}, "volume": {string(r.Volume)}}
	return fetch[sds.Volume](ctx, n.client, source, pathVolume+"?"+q.Encode(), volumeHeader)
}

// fetch opens what another node serves at the path, and decodes the header that
// describes it.
func fetch[T any](ctx context.Context, c *transport.Client, from api.NodeID, path, header string) (content io.ReadCloser, about T, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, about, err
	}
	resp, err := c.Do(ctx, from, r)
	if err != nil {
		return nil, about, err
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(resp.Header.Get(header)), &about) != nil {
		defer resp.Body.Close()
		e := new(api.Error)
		if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(e) == nil && e.Code != "" {
			return nil, about, e
		}
		return nil, about, fmt.Errorf("node %s responded with status %s for %s", from, resp.Status, path)
	}
	return resp.Body, about, nil
}

// serveAgent serves the calls of other nodes to this node's agent.
func (cl *cluster) serveAgent(a *agent.Agent) {
	cl.server.Handle("POST "+pathPrepare, transport.JSON(a.HandlePrepareMigration))
	cl.server.Handle("POST "+pathFinish, transport.JSON(a.HandleFinish))
	cl.server.Handle("POST "+pathCopy, transport.JSON(a.HandleCopyProgress))
	cl.server.Handle("GET "+pathVolume, serveVolume(a))
	cl.server.HandleStream(streamTunnel, func(ctx context.Context, node api.NodeID, header http.Header, c net.Conn) {
		var r agent.TunnelRequest
		if err := json.Unmarshal([]byte(header.Get(tunnelHeader)), &r); err != nil {
			cl.log.Warn("read stream of migration failed", "node", node, "error", err)
			return
		}
		if err := a.HandleTunnel(ctx, node, r, c); err != nil {
			cl.log.Warn("stream of migration was interrupted", "node", node, "migration", r.Migration, "stream", r.Stream, "error", err)
		}
	})
	cl.server.Handle("GET "+pathImage+"{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, img, err := a.ExportImage(r.Context(), api.ImageID(r.PathValue("id")))
		if err != nil {
			transport.WriteError(w, err)
			return
		}
		defer content.Close()
		raw, err := json.Marshal(img)
		if err != nil {
			transport.WriteError(w, err)
			return
		}
		w.Header().Set(imageHeader, string(raw))
		w.Header().Set("Content-Type", "application/octet-stream")
		if _, err := io.Copy(w, content); err != nil {
			panic(http.ErrAbortHandler) // abort, so that a partial image is not taken for a complete one
		}
	}))
}

// volumeExporter is the part of the agent that serveVolume uses.
type volumeExporter interface {
	ExportVolume(ctx context.Context, to api.NodeID, r agent.VolumeRequest, w io.Writer, begin func(sds.Volume)) error
}

// serveVolume serves the content of a stopped instance's volume to the node that the
// instance migrates to.
func serveVolume(a volumeExporter) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, q := false, r.URL.Query()
		ask := agent.VolumeRequest{Migration: api.MigrationID(q.Get("migration")), Volume: api.VolumeID(q.Get("volume"))}
		err := a.ExportVolume(r.Context(), transport.Caller(r.Context()), ask, w, func(v sds.Volume) {
			raw, err := json.Marshal(v)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			w.Header().Set(volumeHeader, string(raw))
			w.Header().Set("Content-Type", "application/octet-stream")
			begun = true
		})
		switch {
		case err != nil && !begun:
			transport.WriteError(w, err)
		case err != nil:
			panic(http.ErrAbortHandler) // abort, so that a partial volume is not taken for a complete one
		}
	})
}

// fenced returns a function that reports whether basalt-fence has ended a run of the instance
// that began at since.
func fenced(f *fence.Client) func(api.InstanceID, time.Time) (bool, error) {
	return func(id api.InstanceID, since time.Time) (bool, error) {
		st, err := f.Status()
		if err != nil {
			return false, err
		}
		now, wall := lease.Now(), time.Now()
		for _, v := range st.Fenced {
			if v.Instance == string(id) && lease.Instant(v.At).Wall(now, wall).After(since) {
				return true, nil
			}
		}
		return false, nil
	}
}

// agentOptions sets the options that an agent needs in a cluster.
func (cl *cluster) agentOptions(o *agent.Options) {
	o.Lease = leaseHolder{cl.lease, cl.fence}
	o.Peers, o.Remote = agentRPC{cl.client}, agentRPC{cl.client}
	o.Migrator, _ = o.Machines.(hypervisor.Migrator)
	o.BootID = lease.BootID()
	o.Agreement = cl.agreement
	if cl.fence != nil {
		o.Fence, o.Fenced = fenceKeeper{cl.fence}, fenced(cl.fence)
	}
}
