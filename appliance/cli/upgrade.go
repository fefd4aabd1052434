package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func (a *App) upgrades() *kind[api.Upgrade] {
	return &kind[api.Upgrade]{
		app: a, noun: "upgrade", about: "Upgrades of the cluster to another release", readOnly: true,

		refs:    []api.Kind{api.KindNode},
		columns: []string{"NODE", "PHASE", "FROM", "TO", "NOTE"},
		row: func(u api.Upgrade) []string {
			return []string{"", string(u.Status.Phase), "", u.Spec.Version, u.Status.Reason}
		},
		ready: upgradeReady,
	}
}

// upgradeReady reports whether an upgrade is done, and what it is doing.
func upgradeReady(u api.Upgrade) (bool, string, error) {
	st := u.Status
	switch {
	case st.Phase == api.UpgradeDone:
		return true, "every node runs " + u.Spec.Version, nil
	case st.Phase == api.UpgradePaused && st.Attempt == u.Spec.Attempt:
		return false, "", api.Errorf(api.CodeState, "upgrade to %s is paused: %s", u.Spec.Version, cmp.Or(st.Reason, "no reason was given")).
			WithHint(upgradeHint)
	case st.Reason == "" && cmp.Or(st.Phase, api.UpgradeChecking) == api.UpgradeChecking:
		return false, "checking every node before the first one is upgraded", nil
	}
	return false, cmp.Or(st.Reason, string(st.Phase)), nil
}

const upgradeHint = "basalt cluster upgrade --status shows the nodes, --resume continues the upgrade, --cancel removes it"

// noUpgrade replaces a not-found error with one about upgrades.
func noUpgrade(err error) error {
	if api.CodeOf(err) != api.CodeNotFound {
		return err
	}
	return api.Errorf(api.CodeNotFound, "no upgrade exists").WithHint("basalt cluster upgrade MEDIUM, DIR or VERSION starts one")
}

// underWay refuses to change an upgrade that is done.
func underWay(u *api.Upgrade) error {
	if u.Status.Phase == api.UpgradeDone {
		return api.Errorf(api.CodeState, "upgrade to %s is finished: it cannot be paused or resumed", u.Spec.Version)
	}
	return nil
}

// upgradeFlags are the flags of cluster upgrade.
type upgradeFlags struct {
	status, pause, resume, cancel, wait bool
	key                                 string // file of the keys of releases
	timeout                             time.Duration
}

func (a *App) clusterUpgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "upgrade VERSION|MEDIUM|DIR", Short: "Upgrade every node to another release, one at a time", Args: cobra.MaximumNArgs(1),
		Long: "MEDIUM is the installation medium of the release: an ISO image, a device with it, or the directory where it is\n" +
			"mounted. Its signature is verified, an older release is refused, and its packages are uploaded to the cluster. DIR\n" +
			"contains the packages basalt_VERSION_amd64.deb and basalt-guest-tools_VERSION_amd64.deb, without a signature. A\n" +
			"VERSION is downloaded by the nodes with apt, from their configured sources. Each node is drained,\n" +
			"upgraded and checked before the next, the leader last. If the new release does not work on a node, the node\n" +
			"returns to the previous release and the upgrade pauses. The upgrade continues if this command is interrupted:\n" +
			"--status shows its progress. Instances that cannot be migrated keep running, including those with a virtual GPU.",
	}
	var u upgradeFlags
	f := cmd.Flags()
	f.BoolVar(&u.status, "status", false, "show progress")
	f.BoolVar(&u.pause, "pause", false, "pause before the next node")
	f.BoolVar(&u.resume, "resume", false, "continue, and retry the step that failed")
	f.BoolVar(&u.cancel, "cancel", false, "cancel a paused upgrade; every node keeps its release")
	f.BoolVar(&u.wait, "wait", true, "print progress until it completes or pauses")
	f.DurationVar(&u.timeout, "timeout", 24*time.Hour, "timeout for --wait")
	f.StringVar(&u.key, "release-key", defaultReleaseKey, "file of the keys that a medium may be signed by")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runUpgrade(cmd.Context(), u, args) }
	return cmd
}

func (a *App) runUpgrade(ctx context.Context, f upgradeFlags, args []string) error {
	chosen := 0
	for _, on := range []bool{f.status, f.pause, f.resume, f.cancel, len(args) == 1} {
		if on {
			chosen++
		}
	}
	if chosen != 1 {
		return usagef("VERSION, MEDIUM, DIR, or one of --status, --pause, --resume and --cancel is required")
	}
	k := a.upgrades()
	switch {
	case f.status:
		u, err := k.get(ctx, api.UpgradeName)
		if err != nil {
			return noUpgrade(err)
		}
		return a.printUpgrade(ctx, u)
	case f.pause:
		u, err := k.change(ctx, api.UpgradeName, func(u *api.Upgrade) error { u.Spec.Paused = true; return underWay(u) })
		if err != nil {
			return noUpgrade(err)
		}
		return a.printUpgrade(ctx, u)
	case f.cancel:
		u, err := k.get(ctx, api.UpgradeName)
		if err == nil {
			_, err = k.objects().Delete(ctx, u.Meta.ID)
		}
		if err == nil {
			fmt.Fprintf(a.Err, "upgrade to %s cancelled; every node keeps its release\n", u.Spec.Version)
		}
		return noUpgrade(err)
	}
	var u api.Upgrade
	var err error
	if f.resume {
		u, err = k.change(ctx, api.UpgradeName, func(u *api.Upgrade) error {
			u.Spec.Paused = false
			if u.Status.Phase == api.UpgradePaused {
				u.Spec.Attempt = u.Status.Attempt + 1
			}
			return underWay(u)
		})
		err = noUpgrade(err)
	} else {
		u, err = a.beginUpgrade(ctx, k, args[0], f.key)
	}
	if err == nil && f.wait {
		u, err = a.awaitUpgrade(ctx, u, f.timeout)
	}
	if err != nil {
		return err
	}
	return a.printUpgrade(ctx, u)
}

// beginUpgrade uploads the packages, if there are any, and starts the upgrade.
func (a *App) beginUpgrade(ctx context.Context, k *kind[api.Upgrade], what, key string) (none api.Upgrade, err error) {
	if old, err := k.get(ctx, api.UpgradeName); err == nil {
		if old.Status.Phase != api.UpgradeDone {
			return none, api.Errorf(api.CodeState, "cannot start another upgrade: the one to %s is %s, want %s",
				old.Spec.Version, cmp.Or(old.Status.Phase, api.UpgradeChecking), api.UpgradeDone).WithHint(upgradeHint)
		}
		if _, err := k.objects().Delete(ctx, old.Meta.ID); err != nil {
			return none, err
		}
	} else if api.CodeOf(err) != api.CodeNotFound {
		return none, err
	}
	spec, err := a.upgradeTo(ctx, what, key)
	if err != nil {
		return none, err
	}
	return k.objects().Create(ctx, api.Upgrade{Meta: api.Meta{Name: api.UpgradeName}, Spec: spec})
}

// upgradeTo uploads the packages of a medium or a directory. A version needs no upload.
func (a *App) upgradeTo(ctx context.Context, what, key string) (api.UpgradeSpec, error) {
	info, err := os.Stat(what)
	switch c := what[:min(1, len(what))]; {
	case err == nil && info.IsDir() && !isMedium(what):
		return a.sendPackages(ctx, what)
	case err == nil:
		return a.sendMedium(ctx, what, key)
	case strings.ContainsRune(what, filepath.Separator):
		return api.UpgradeSpec{}, usagef("%s does not exist", what)
	case c < "0" || c > "9":
		return api.UpgradeSpec{}, usagef("%q is neither a medium, a directory nor a version, which begins with a digit", what)
	}
	return api.UpgradeSpec{Version: what}, nil
}

// nodePackages are the packages that a node has installed; basalt-installer is only on the
// medium.
var nodePackages = []string{"basalt", "basalt-guest-tools"}

// sendPackages finds the packages in a directory, which must have the same version, and uploads
// them.
func (a *App) sendPackages(ctx context.Context, dir string) (spec api.UpgradeSpec, err error) {
	var paths []string
	for _, name := range nodePackages {
		found, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
		if err != nil {
			return spec, err
		}
		if len(found) != 1 {
			return spec, usagef("directory %s has %d files %s_VERSION_ARCHITECTURE.deb, want 1", dir, len(found), name)
		}
		file := filepath.Base(found[0])
		parts := strings.Split(file, "_")
		if len(parts) != 3 {
			return spec, usagef("directory %s: the name of %s is not of the form %s_VERSION_ARCHITECTURE.deb", dir, file, name)
		}
		if spec.Version != "" && spec.Version != parts[1] {
			return spec, usagef("directory %s: the version of %s is %s, want %s as that of %s", dir, file, parts[1], spec.Version, filepath.Base(paths[0]))
		}
		spec.Version = parts[1]
		paths = append(paths, found[0])
	}
	for i, path := range paths {
		p, err := a.sendPackage(ctx, nodePackages[i], path)
		if err != nil {
			return spec, fmt.Errorf("%s: %w", path, err)
		}
		spec.Packages = append(spec.Packages, p)
	}
	return spec, nil
}

func (a *App) sendPackage(ctx context.Context, name, path string) (p api.UpgradePackage, err error) {
	file, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return p, err
	}
	p = api.UpgradePackage{Name: name, SizeBytes: info.Size()}
	if p.Sha256, err = a.checksum(file, p.SizeBytes); err != nil {
		return p, err
	}
	return p, a.putPackage(ctx, p, file)
}

// putPackage uploads file, the content of package p.
func (a *App) putPackage(ctx context.Context, p api.UpgradePackage, file io.ReadSeeker) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	bar := a.progress("sending "+p.Name, p.SizeBytes)
	err := a.api.PutUpgradePackage(ctx, p.Sha256, io.TeeReader(file, bar), p.SizeBytes)
	bar.end()
	return err
}

// awaitUpgrade prints the progress until the upgrade is done or paused. The server may be
// unreachable for some time, as it is upgraded too.
func (a *App) awaitUpgrade(ctx context.Context, u api.Upgrade, limit time.Duration) (api.Upgrade, error) {
	const interval, maxAway = time.Second, 5 * time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, api.Errorf(codeTimeout, "upgrade to %s was not finished within %s", u.Spec.Version, limit).
		WithHint("it continues without this command: basalt cluster upgrade --status shows the nodes"))
	defer cancel()
	id, reported, heard := u.Meta.ID, "", time.Now()
	report := func(text string) {
		if text != "" && text != reported {
			reported = text
			fmt.Fprintln(a.Err, printable(text))
		}
	}
	a.learn(ctx, []api.Kind{api.KindNode})
	for {
		done, doing, err := upgradeReady(u)
		if done || err != nil {
			return u, err
		}
		half := slices.IndexFunc(u.Status.Nodes, func(n api.UpgradeNode) bool { return n.Phase.InProgress() })
		if half >= 0 {
			n := u.Status.Nodes[half]
			doing = fmt.Sprintf("node %s: %s", a.named(string(n.Node)), n.Phase)
		}
		report(doing)
		select {
		case <-ctx.Done():
			return u, context.Cause(ctx)
		case <-time.After(interval):
		}
		next, err := client.Of[api.Upgrade](a.api).Get(ctx, id, client.Query{})
		switch {
		case err == nil:
			u, heard = next, time.Now()
		case api.CodeOf(err) == api.CodeUnavailable && time.Since(heard) < maxAway:
			report("the server is not responding, retrying")
		case api.CodeOf(err) == api.CodeNotFound:
			return u, api.Errorf(api.CodeState, "upgrade to %s was cancelled before it was finished", u.Spec.Version).
				WithHint("every node keeps its release: basalt cluster status")
		default:
			return u, timedOut(ctx, err)
		}
	}
}

// printUpgrade prints the upgrade and one line per node.
func (a *App) printUpgrade(ctx context.Context, u api.Upgrade) error {
	return a.print(u, func() table {
		a.learn(ctx, []api.Kind{api.KindNode})
		note := u.Status.Reason
		if u.Spec.Paused && u.Status.Phase != api.UpgradePaused {
			note = cmp.Or(note, "pausing before the next node")
		}
		t := table{{"NODE", "PHASE", "FROM", "TO", "NOTE"}, {"(all)", string(cmp.Or(u.Status.Phase, api.UpgradeChecking)), "", u.Spec.Version, note}}
		for _, n := range u.Status.Nodes {
			t = append(t, []string{a.named(string(n.Node)), string(n.Phase), n.From, n.To, n.Message})
		}
		return t
	})
}
