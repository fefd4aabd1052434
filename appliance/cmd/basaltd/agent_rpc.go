package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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
	streamTunnel = "migration"
	pathImage    = "/agent/images/"
	// imageHeader describes the image whose bytes are the body.
	imageHeader = "Basalt-Image"
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

func (n agentRPC) OpenTunnel(ctx context.Context, target api.NodeID, r agent.TunnelRequest) (net.Conn, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return n.client.Stream(ctx, target, streamTunnel, http.Header{tunnelHeader: {string(raw)}})
}

func (n agentRPC) FetchImage(ctx context.Context, from api.NodeID, id api.ImageID) (io.ReadCloser, sds.Image, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, pathImage+string(id), nil)
	if err != nil {
		return nil, sds.Image{}, err
	}
	resp, err := n.client.Do(ctx, from, r)
	if err != nil {
		return nil, sds.Image{}, err
	}
	var img sds.Image
	if resp.StatusCode != http.StatusOK || json.Unmarshal([]byte(resp.Header.Get(imageHeader)), &img) != nil {
		defer resp.Body.Close()
		e := new(api.Error)
		if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(e) == nil && e.Code != "" {
			return nil, img, e
		}
		return nil, img, fmt.Errorf("node %s responded with status %s for image %s", from, resp.Status, id)
	}
	return resp.Body, img, nil
}

// serveAgent serves the calls of other nodes to this node's agent.
func (cl *cluster) serveAgent(a *agent.Agent) {
	cl.server.Handle("POST "+pathPrepare, transport.JSON(a.HandlePrepareMigration))
	cl.server.Handle("POST "+pathFinish, transport.JSON(a.HandleFinish))
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
