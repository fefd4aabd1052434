package cluster_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

const guestNode = 4 // the fourth node, which some stories start

// fresh starts the fourth node as a new machine. flags are additional flags of its basaltd.
func (c *cluster) fresh(flags ...string) {
	c.t.Helper()
	c.kill(guestNode)
	dir := c.file(guestNode, "")
	must(c, os.RemoveAll(dir))
	must(c, os.MkdirAll(dir, 0o755))
	if len(flags) > 0 {
		must(c, os.WriteFile(filepath.Join(dir, "args"), []byte(strings.Join(flags, "\n")+"\n"), 0o600))
	}
	c.start(guestNode)
}

// refused checks that the fourth node cannot join with the token, and the error.
func (c *cluster) refused(token string, code api.Code, words string) {
	c.t.Helper()
	_, err := c.socket(guestNode).SetupJoin(c.ctx, token)
	if err == nil {
		c.t.Fatalf("node joined, want error %s with %q", code, words)
	}
	if api.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		c.t.Errorf("join failed with %v (%s), want %s with %q", err, api.CodeOf(err), code, words)
	}
	c.t.Logf("refused: %v", err)
}

// otherSecret returns the token with a wrong secret.
func otherSecret(c *cluster, token string) string {
	c.t.Helper()
	const prefix = "bslt-join-"
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, prefix))
	must(c, err)
	fields := map[string]any{}
	must(c, json.Unmarshal(raw, &fields))
	if fields["secret"] == nil {
		c.t.Fatalf("fields of a token = %v, want a secret", fields)
	}
	secret := fields["secret"].(string)
	flip := "A"
	if strings.HasPrefix(secret, "A") {
		flip = "B"
	}
	fields["secret"] = flip + secret[1:]
	raw, err = json.Marshal(fields)
	must(c, err)
	return prefix + base64.RawURLEncoding.EncodeToString(raw)
}

// joining: every invalid attempt to become a member, a valid one, and both ways to leave.
func joining(c *cluster) {
	defer c.kill(guestNode)
	c.fresh()
	good := c.token(time.Hour)
	c.refused("bslt-join-AAAA", api.CodeInvalid, "token")
	c.refused(good[:len(good)-9], api.CodeInvalid, "token")
	c.refused(otherSecret(c, good), api.CodeForbidden, "not valid")
	short := c.token(2 * time.Second)
	time.Sleep(3 * time.Second) // until it has expired
	c.refused(short, api.CodeForbidden, "expired")
	c.fresh("--node-name", "n1")
	c.refused(good, api.CodeExists, "named n1")
	c.fresh()
	must(c, os.MkdirAll(c.file(guestNode, "data/store/old"), 0o700))
	c.refused(good, api.CodeState, "already has a state")
	must(c, os.RemoveAll(c.file(guestNode, "data/store")))

	if _, err := c.socket(guestNode).SetupJoin(c.ctx, good); err != nil {
		c.t.Fatalf("join with a valid token: %v", err)
	}
	id := c.setup(guestNode).NodeID
	c.ids[guestNode] = id
	defer delete(c.ids, guestNode)
	c.until(time.Minute, "the fourth node is Ready and has no vote", func() bool {
		n, err := client.Of[api.Node](c.op()).Get(c.ctx, string(id), client.Query{})
		return err == nil && n.Assignment.State == api.NodeReady && !n.Assignment.Voter && n.Status.Accelerator != ""
	})
	c.until(time.Minute, "it serves the API", func() bool {
		_, err := client.Of[api.Organization](c.client(guestNode)).Get(c.ctx, "org", client.Query{})
		return err == nil
	})
	ids := c.create(want{name: "fourth", on: guestNode, pool: "shared"})
	_, err := c.op().RemoveNode(c.ctx, string(id), false)
	c.code(err, api.CodeInUse)
	_, err = c.socket(guestNode).SetupLeave(c.ctx)
	c.code(err, api.CodeInUse)
	c.remove(ids)
	if _, err := c.socket(guestNode).SetupLeave(c.ctx); err != nil {
		c.t.Fatalf("leave: %v", err)
	}
	c.until(time.Minute, "it has left", func() bool { return c.setup(guestNode).State == api.SetupLeft })
	c.refused(good, api.CodeForbidden, "used")

	// It joins again as another node, and fails permanently.
	c.join(guestNode)
	again := c.setup(guestNode).NodeID
	if again == id {
		c.t.Errorf("node that joined again has the old ID %s, want a new one", id)
	}
	c.ids[guestNode] = again
	c.until(time.Minute, "Ready again", func() bool {
		n, err := client.Of[api.Node](c.op()).Get(c.ctx, string(again), client.Query{})
		return err == nil && n.Assignment.State == api.NodeReady && n.Status.Accelerator != ""
	})
	ids = c.create(want{name: "orphan", on: guestNode, pool: "shared"}, want{name: "gone", on: guestNode, pool: "local"})
	began := time.Now()
	c.kill(guestNode)
	_, err = c.op().RemoveNode(c.ctx, string(again), false)
	c.code(err, api.CodeInUse)
	_, err = c.op().RemoveNode(c.ctx, string(again), true)
	must(c, err)
	c.until(failoverLimit, "it is removed", func() bool {
		_, err := client.Of[api.Node](c.op()).Get(c.ctx, string(again), client.Query{})
		return err != nil && api.CodeOf(err) == api.CodeNotFound
	})
	c.t.Logf("removed with force %v after its power loss", time.Since(began).Round(10*time.Millisecond))
	c.runs(ids["orphan"], failoverLimit)
	gone := c.get(ids["gone"])
	c.t.Logf("an instance whose disk was lost: %s, assignment %+v, error %q", gone.Status.Phase, gone.Assignment, gone.Status.LastError)
	if len(c.watch.of(ids["gone"])) != 0 {
		c.t.Errorf("QEMUs of an instance whose disk was lost: %v, want none", c.watch.of(ids["gone"]))
	}

	// The removed node starts again: it is no longer known to the cluster.
	c.start(guestNode)
	c.until(failoverLimit, "the removed node reports that it is no longer a member", func() bool {
		s, err := c.socket(guestNode).Setup(c.ctx)
		return err == nil && !s.Quorum && strings.Contains(s.Message, "no longer a member of the cluster")
	})
	s := c.setup(guestNode)
	c.t.Logf("state of a removed node: %s, quorum %v, %q", s.State, s.Quorum, s.Message)
	if machines := append(c.watch.of(ids["gone"]), c.watch.of(ids["orphan"])...); len(machines) != 1 {
		c.t.Errorf("QEMUs of the removed node's instances: %v, want one, on another node", machines)
	}
	c.kill(guestNode)
	c.remove(ids)
}

func (c *cluster) code(err error, want api.Code) {
	c.t.Helper()
	if err == nil || api.CodeOf(err) != want {
		c.t.Errorf("error = %v (%s), want %s", err, api.CodeOf(err), want)
	}
}

// backedUp: a backup of the control plane is restored as a new cluster on another node, while
// the old cluster continues.
func backedUp(c *cluster) {
	defer c.kill(guestNode)
	var backup bytes.Buffer
	must(c, c.op().Backup(c.ctx, &backup))
	c.t.Logf("the backup has %d bytes", backup.Len())
	_, err := client.Of[api.Organization](c.op()).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "later"}})
	must(c, err)
	want := map[string]string{}
	for o, err := range client.Of[api.Organization](c.op()).All(c.ctx, client.Query{}) {
		must(c, err)
		want[o.Meta.Name] = o.Meta.ID
	}
	delete(want, "later")

	c.fresh()
	damaged := bytes.Clone(backup.Bytes())
	damaged[len(damaged)/2] ^= 1
	if _, err := c.socket(guestNode).SetupRestore(c.ctx, bytes.NewReader(damaged)); err == nil {
		c.t.Fatal("restore of a damaged backup succeeded, want an error")
	} else {
		c.t.Logf("restore of a damaged backup: %v", err)
	}
	began := time.Now()
	if _, err := c.socket(guestNode).SetupRestore(c.ctx, bytes.NewReader(backup.Bytes())); err != nil {
		c.t.Fatal(err)
	}
	var restored *client.API
	c.until(time.Minute, "the restored cluster accepts writes", func() bool {
		restored = c.client(guestNode) // with the key from before the backup
		_, err := client.Of[api.Organization](restored).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "new-life"}})
		return err == nil || api.CodeOf(err) == api.CodeExists
	})
	c.t.Logf("restored to the first acknowledged write: %v", time.Since(began).Round(10*time.Millisecond))
	got := map[string]string{}
	for o, err := range client.Of[api.Organization](restored).All(c.ctx, client.Query{}) {
		must(c, err)
		got[o.Meta.Name] = o.Meta.ID
	}
	for name, id := range want {
		if got[name] != id {
			c.t.Errorf("ID of restored organization %s = %q, want %q", name, got[name], id)
		}
	}
	if _, ok := got["later"]; ok {
		c.t.Error("restored cluster has the organization that was created after the backup")
	}
	if _, err := client.Of[api.Image](restored).Get(c.ctx, "halt", client.Query{}); err != nil {
		c.t.Errorf("image in the restored cluster: %v", err)
	}
	if _, err := client.Of[api.Organization](c.op()).Get(c.ctx, "new-life", client.Query{}); api.CodeOf(err) != api.CodeNotFound || err == nil {
		c.t.Errorf("the restored cluster's organization in the old cluster: error %v, want NotFound", err)
	}
	var nodes client.Page[api.Node]
	c.until(time.Minute, "the restored cluster lists its own node and the old ones", func() bool {
		var err error
		nodes, err = client.Of[api.Node](restored).Page(c.ctx, client.Query{})
		return err == nil && len(nodes.Items) == 4
	})
	began = time.Now()
	for _, n := range nodes.Items {
		if n.Meta.Name != name(guestNode) {
			_, err := restored.RemoveNode(c.ctx, n.Meta.ID, true)
			must(c, err)
		}
	}
	c.until(failoverLimit, "the old nodes are removed", func() bool {
		page, err := client.Of[api.Node](restored).Page(c.ctx, client.Query{})
		return err == nil && len(page.Items) == 1 && page.Items[0].Assignment.State == api.NodeReady
	})
	c.t.Logf("the old cluster's nodes are removed, with force, after %v", time.Since(began).Round(10*time.Millisecond))
	_, err = client.Of[api.Organization](c.op()).Delete(c.ctx, c.organization("later"))
	must(c, err)
}

func (c *cluster) organization(name string) string {
	c.t.Helper()
	o, err := client.Of[api.Organization](c.op()).Get(c.ctx, name, client.Query{})
	must(c, err)
	return o.Meta.ID
}

// quorumLost: two of three nodes are destroyed permanently. One command turns the third into a
// cluster again. It is the last story, because the cluster is not repaired.
func quorumLost(c *cluster) {
	const survivor = 2
	dead := others(survivor)
	ids := c.create(want{name: "here", on: survivor, pool: "shared"}, want{name: "there", on: dead[0], pool: "shared"},
		want{name: "card", on: dead[1], pool: "shared", vram: gib}, want{name: "buried", on: dead[0], pool: "local"})
	h := c.record("quorum")
	h.busy(c, 2*fewest)
	h.end()
	before := c.qemus(map[string]string{"here": ids["here"]})
	for _, n := range dead {
		c.kill(n)
	}
	c.ask(survivor)
	c.until(time.Minute, "the survivor refuses writes and names the reason", func() bool {
		_, err := client.Of[api.Organization](c.client(survivor)).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "lonely"}})
		return saysWhy(err)
	})
	_, err := c.socket(survivor).SetupRecover(c.ctx, "n9")
	c.code(err, api.CodeInvalid)
	began := time.Now()
	if _, err := c.socket(survivor).SetupRecover(c.ctx, name(survivor)); err != nil {
		c.t.Fatal(err)
	}
	c.until(time.Minute, "the survivor accepts writes", func() bool {
		_, err := client.Of[api.Organization](c.client(survivor)).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "lonely"}})
		return err == nil || api.CodeOf(err) == api.CodeExists
	})
	c.t.Logf("recovered to the first acknowledged write: %v", time.Since(began).Round(10*time.Millisecond))
	h.check(c.t)
	for _, name := range []string{"there", "card"} {
		c.runs(ids[name], failoverLimit)
	}
	c.t.Logf("instances of the other nodes run here after %v", time.Since(began).Round(10*time.Millisecond))
	c.runs(ids["here"], failoverLimit)
	if now := c.qemus(map[string]string{"here": ids["here"]}); now["here"] != before["here"] {
		c.t.Logf("pid of here = %d, was %d: killed when the lease expired", now["here"], before["here"])
	}
	buried := c.get(ids["buried"])
	c.t.Logf("instance whose disk is lost: %s, %+v", buried.Status.Phase, buried.Assignment)

	// One of the destroyed nodes returns with its old state.
	c.start(dead[0])
	c.until(failoverLimit, "it reports that it is no longer a member", func() bool {
		s, err := c.socket(dead[0]).Setup(c.ctx)
		return err == nil && !s.Quorum && strings.Contains(s.Message, "no longer a member of the cluster")
	})
	s := c.setup(dead[0])
	c.t.Logf("state of the node that returned: %s, quorum %v, %q", s.State, s.Quorum, s.Message)
	nodes, err := client.Of[api.Node](c.op()).Page(c.ctx, client.Query{})
	must(c, err)
	if len(nodes.Items) != 1 {
		c.t.Errorf("nodes after the recovery = %d, want 1", len(nodes.Items))
	}
	c.watchFor(10*time.Second, func() {
		if all := append(c.watch.of(ids["there"]), c.watch.of(ids["buried"])...); len(all) != 1 {
			c.t.Errorf("QEMUs of instances from before: %v, want one, on the survivor", all)
		}
	})
	c.kill(dead[0])
	must(c, os.RemoveAll(c.file(dead[0], "data")))
	c.start(dead[0])
	c.join(dead[0])
}
