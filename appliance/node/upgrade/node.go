// Package upgrade is a node's part in upgrades of the cluster: it fetches the
// packages from its peers and starts the program that installs them (Agent), and
// stores packages for the other nodes (Packages). The leader decides which node is
// next (appliance/controlplane/upgrade).
package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/upgrade"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// Peers gives access to the cluster's nodes.
type Peers interface {
	Nodes() []api.NodeID
	// FetchPackage opens a package of another node. The caller closes it.
	FetchPackage(ctx context.Context, from api.NodeID, sha256 string) (io.ReadCloser, error)
}

// Agent is one node's part: it fetches the packages, and has them installed when it
// is its node's turn. It has no state of its own: the program writes its outcome
// into a file.
type Agent struct {
	Cache    *watchcache.Cache
	Self     api.NodeID
	Version  string // the version that runs
	Packages Packages
	Peers    Peers
	// Program installs another release: "PROGRAM start --id ID --version VERSION
	// --socket SOCKET --outcome FILE [--package FILE]…". It returns at once. What
	// it has started outlives basaltd, installs the packages, checks the new
	// release by the socket, and writes an outcome. Another call for the same ID
	// does not start a second installation.
	Program string
	Socket  string
	Dir     string       // directory of the outcome
	Told    func()       // called when Status has changed
	Log     *slog.Logger //

	started map[string]time.Time // when the program was started, by its ID
	refused map[string]string    // why it did not start, by its ID

	mu     sync.Mutex // guards status
	status api.NodeUpgrade
}

const (
	// startAgain is the interval of further calls of the program while there is no
	// outcome: the machine may have been switched off during the installation.
	startAgain = 10 * time.Second
	startLimit = time.Minute // for the program to return
	fetchLimit = 10 * time.Minute
	maxOutcome = 64 << 10
	maxMessage = 1 << 10
)

// outcome is what the program writes, as JSON.
type outcome struct {
	ID      string            `json:"id"`
	Result  api.UpgradeResult `json:"result"`
	Message string            `json:"message"`
}

// Status returns the progress of this node.
func (a *Agent) Status() api.NodeUpgrade {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// Run runs the agent until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	a.started, a.refused = map[string]time.Time{}, map[string]string{}
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	return watchcache.Run(ctx, a.Cache, upgrade.Kinds, a.step)
}

func (a *Agent) step(ctx context.Context, s *objects.Set) time.Duration {
	u := upgrade.Of(s)
	var named []api.UpgradePackage
	if u != nil {
		named = u.Spec.Packages
	}
	if err := a.Packages.Sweep(named, time.Now()); err != nil {
		a.Log.Warn("upgrade: remove old packages failed", "error", err)
	}
	if upgrade.Over(u) {
		a.setStatus(api.NodeUpgrade{})
		return time.Hour
	}
	a.setStatus(a.advance(ctx, *u))
	return upgrade.Every
}

func (a *Agent) setStatus(s api.NodeUpgrade) {
	a.mu.Lock()
	changed := s != a.status
	a.status = s
	a.mu.Unlock()
	if changed {
		a.Told()
	}
}

// advance performs the next step of this node, and returns its progress.
func (a *Agent) advance(ctx context.Context, u api.Upgrade) api.NodeUpgrade {
	s := api.NodeUpgrade{Upgrade: u.Meta.ID}
	if err := a.fetch(ctx, u); err != nil {
		s.Message = clipMessage(err.Error())
		return s
	}
	s.Fetched = true
	id := fmt.Sprintf("%s-%d", u.Meta.ID, u.Status.Attempt)
	if o, ok := a.outcome(id); ok {
		s.Attempt, s.Result, s.Message = u.Status.Attempt, o.Result, clipMessage(o.Message)
		return s
	}
	turn := slices.ContainsFunc(u.Status.Nodes, func(n api.UpgradeNode) bool {
		return n.Node == a.Self && n.Phase == api.UpgradeNodeInstalling
	})
	if turn && a.refused[id] == "" && time.Since(a.started[id]) >= startAgain {
		a.started[id] = time.Now()
		if err := a.start(ctx, u, id); err != nil && ctx.Err() == nil {
			a.Log.Error("upgrade: start installation of packages failed", "version", u.Spec.Version, "error", err)
			a.refused[id] = clipMessage(err.Error())
		}
	}
	if why := a.refused[id]; why != "" {
		s.Attempt, s.Result, s.Message = u.Status.Attempt, api.UpgradeResultFailed, why
	}
	return s
}

func clipMessage(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "")
}

// fetch fetches the missing packages from nodes that have them.
func (a *Agent) fetch(ctx context.Context, u api.Upgrade) error {
	if a.Version == u.Spec.Version {
		return nil
	}
	for _, p := range u.Spec.Packages {
		if a.Packages.Has(p.Sha256) {
			continue
		}
		if err := a.fetchOne(ctx, p); err != nil {
			return err
		}
		a.Log.Info("upgrade: fetched package", "name", p.Name, "bytes", p.SizeBytes)
	}
	return nil
}

func (a *Agent) fetchOne(ctx context.Context, p api.UpgradePackage) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	var errs []error
	for _, from := range a.Peers.Nodes() {
		if from == a.Self {
			continue
		}
		content, err := a.Peers.FetchPackage(ctx, from, p.Sha256)
		if err == nil {
			err = a.Packages.Put(ctx, p.Sha256, content, p.SizeBytes)
			_ = content.Close() // the reader has nothing to flush
		}
		if err == nil {
			return nil
		}
		if api.CodeOf(err) != api.CodeNotFound {
			errs = append(errs, fmt.Errorf("from node %s: %w", from, err))
		}
	}
	return cmp.Or(errors.Join(errs...), error(api.Errorf(api.CodeUnavailable, "no node has package %s", p.Name)))
}

// outcome returns the outcome of the installation with the ID, if the program has
// written one.
func (a *Agent) outcome(id string) (o outcome, ok bool) {
	f, err := os.Open(a.file())
	if err != nil {
		return o, false
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxOutcome))
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	switch {
	case err != nil:
		a.Log.Warn("upgrade: read result of installation failed", "file", a.file(), "error", err)
		return o, false
	case o.Result != api.UpgradeResultDone && o.Result != api.UpgradeResultRolledBack:
		o.Result = api.UpgradeResultFailed
	}
	return o, o.ID == id
}

func (a *Agent) file() string { return filepath.Join(a.Dir, "outcome.json") }

// start starts the program. What it starts may keep its output open.
func (a *Agent) start(ctx context.Context, u api.Upgrade, id string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	args := []string{"start", "--id", id, "--version", u.Spec.Version, "--socket", a.Socket, "--outcome", a.file()}
	for _, p := range u.Spec.Packages {
		args = append(args, "--package", a.Packages.Path(p.Sha256))
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, a.Program, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		if words := strings.TrimSpace(said.String()); words != "" {
			return fmt.Errorf("%s: %w: %s", a.Program, err, words)
		}
		return fmt.Errorf("%s: %w", a.Program, err)
	}
	a.Log.Info("upgrade: packages are being installed", "version", u.Spec.Version, "id", id)
	return nil
}
