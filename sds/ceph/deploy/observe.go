package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func reader(s string) io.Reader { return strings.NewReader(s) }

// wanted returns the files that are generated from the intent: content by
// path.
func (n Node) wanted(in Intent, k Keys) map[string]string {
	l := n.files()
	return map[string]string{
		l.conf():        in.config(l, n.ID, n.address(in)),
		l.keys("admin"): keyring(k.admin()),
		l.keys(Client):  keyring(k.client()),
		l.monKeys():     keyring(k.mon(), k.admin(), k.client()),
	}
}

// Observe observes the node and, if possible, queries the mons.
func (n Node) Observe(ctx context.Context, in Intent, k Keys, leader bool) (Observed, error) {
	o := Observed{Node: n.ID, Leader: leader, Config: true}
	for path, want := range n.wanted(in, k) {
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return o, err
		}
		o.Config = o.Config && string(have) == want
	}
	var err, err2 error
	o.Mon, err = n.daemon(ctx, n.files().mon(), monDaemon)
	o.Mgr, err2 = n.daemon(ctx, n.files().mgr(), mgrDaemon)
	if err := errors.Join(err, err2); err != nil {
		return o, err
	}
	for _, d := range in.Disks {
		if d.Node != n.ID {
			continue
		}
		f, err := n.observeDisk(ctx, in, d)
		if err != nil {
			return o, err
		}
		o.Disks = append(o.Disks, f)
	}
	if err := n.observeTables(ctx, in, &o); err != nil {
		return o, err
	}
	if o.Mapped, err = n.mappedOSDs(ctx); err != nil {
		return o, err
	}
	if o.Config && (in.Exists || o.Mon == Running) {
		if o.Cluster, err = n.cluster(ctx, in); err != nil && ctx.Err() != nil {
			return o, ctx.Err()
		}
	}
	return o, nil
}

func (n Node) daemon(ctx context.Context, dir, name string) (State, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	} else if err != nil {
		return "", err
	}
	running, err := n.running(ctx, name)
	if err != nil || running {
		return Running, err
	}
	return Stopped, nil
}

// observeDisk observes a disk of the intent.
func (n Node) observeDisk(ctx context.Context, in Intent, d Disk) (Found, error) {
	f, err := probe(ctx, in.FSID, d.Path)
	if err != nil {
		return f, err
	}
	if f.Content == Begun && f.UUID != d.UUID {
		f.Content, f.What = Other, "the start of another OSD"
	}
	if d.Crypt != nil || f.Encrypted {
		if f, err = n.observeMapping(ctx, in, d, f); err != nil {
			return f, err
		}
	}
	dir := n.files().osd(d.UUID)
	raw, err := os.ReadFile(filepath.Join(dir, "whoami"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return f, err
	}
	f.Made = true
	if f.ID, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil {
		return f, fmt.Errorf("%s/whoami: %w", dir, err)
	}
	f.Running, err = n.running(ctx, osdDaemon(f.ID))
	return f, err
}

// cluster queries the mons. One program runs several queries: starting it
// takes longer than they do.
func (n Node) cluster(ctx context.Context, in Intent) (*Cluster, error) {
	raw, err := n.ceph(ctx, clusterQueries)
	if err != nil {
		return nil, err
	}
	c, err := decodeCluster(raw)
	if err != nil {
		return nil, err
	}
	var ask strings.Builder
	for _, d := range in.Disks {
		if at := c.known(d.UUID); at >= 0 && d.Leave && !c.OSDs[at].In {
			fmt.Fprintf(&ask, "osd safe-to-destroy %d\n", c.OSDs[at].ID)
		}
	}
	if ask.Len() == 0 {
		return c, nil
	}
	if raw, err = n.ceph(ctx, ask.String()); err != nil {
		return nil, err
	}
	safe := decodeSafe(raw)
	for i := range c.OSDs {
		c.OSDs[i].Safe = safe[c.OSDs[i].ID]
	}
	return c, nil
}

// clusterQueries are the queries whose answers decodeCluster decodes.
const clusterQueries = "mon dump\nosd dump\nosd crush rule dump\nosd tree\n"

// decodeCluster decodes the answers to clusterQueries.
func decodeCluster(raw []byte) (*Cluster, error) {
	var mons struct {
		Mons []struct{ Name string }
	}
	var dump struct {
		OSDs []struct {
			OSD    int
			UUID   string
			Up, In int
		}
		Pools []struct {
			Name        string `json:"pool_name"`
			Size        int
			MinSize     int                        `json:"min_size"`
			Rule        int                        `json:"crush_rule"`
			PGs         int                        `json:"pg_num_target"`
			Autoscale   string                     `json:"pg_autoscale_mode"`
			Application map[string]json.RawMessage `json:"application_metadata"`
		}
	}
	var rules []struct {
		ID   int    `json:"rule_id"`
		Name string `json:"rule_name"`
	}
	var tree struct {
		Nodes []struct {
			ID    int
			Type  string
			Class string `json:"device_class"`
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	for _, into := range []any{&mons, &dump, &rules, &tree} {
		if err := d.Decode(into); err != nil {
			return nil, fmt.Errorf("decode answer of the monitors: %w", err)
		}
	}
	c := &Cluster{}
	names := map[int]string{}
	for _, m := range mons.Mons {
		c.Mons = append(c.Mons, m.Name)
	}
	for _, r := range rules {
		c.Rules = append(c.Rules, r.Name)
		names[r.ID] = r.Name
	}
	class := map[int]string{}
	for _, n := range tree.Nodes {
		if n.Type == "osd" {
			class[n.ID] = n.Class
		}
	}
	for _, o := range dump.OSDs {
		c.OSDs = append(c.OSDs, OSDState{ID: o.OSD, UUID: o.UUID, Up: o.Up == 1, In: o.In == 1, Class: class[o.OSD]})
	}
	for _, p := range dump.Pools {
		_, rbd := p.Application["rbd"]
		c.Pools = append(c.Pools, PoolState{
			Name: p.Name, Replicas: p.Size, Minimum: p.MinSize, Rule: names[p.Rule], PGs: p.PGs, Autoscale: p.Autoscale == "on", Enabled: rbd,
		})
	}
	return c, nil
}

// decodeSafe decodes answers to osd safe-to-destroy. An invalid one, such as
// for an OSD that was removed, makes nothing safe.
func decodeSafe(raw []byte) map[int]bool {
	safe := map[int]bool{}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var a struct {
			Safe []int `json:"safe_to_destroy"`
		}
		if d.Decode(&a) != nil {
			return safe
		}
		for _, id := range a.Safe {
			safe[id] = true
		}
	}
}
