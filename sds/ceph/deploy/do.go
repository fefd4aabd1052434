package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sds/ceph/command"
	"github.com/basalt-gpu/basalt/sds/rawdisk"
)

const makeTime = 5 * time.Minute // for a mkfs

// Do executes one action. After an interruption at any point it can be
// repeated.
func (n Node) Do(ctx context.Context, in Intent, k Keys, a Action) error {
	l := n.files()
	conf := []string{"--conf", l.conf()}
	switch a.Do {
	case WriteConfig:
		return n.writeConfig(in, k)
	case Refuse:
		return nil
	case MakeFirstMon, JoinMon:
		return n.makeMon(ctx, in, a.Do == MakeFirstMon)
	case StartMon:
		argv := []string{"ceph-mon", "-f", "-i", n.ID, "--public-addr", msgr2(must(in.mon(n.ID)).Address)}
		return n.start(ctx, monDaemon, append(argv, conf...))
	case StopMon:
		return n.stop(ctx, monDaemon)
	case DropMon:
		return removeDir(l.mon())
	case MakeMgr:
		return n.makeMgr(ctx)
	case StartMgr:
		return n.start(ctx, mgrDaemon, append([]string{"ceph-mgr", "-f", "-i", n.ID}, conf...))
	case StopMgr:
		return n.stop(ctx, mgrDaemon)
	case PrepareOSD:
		return n.prepareOSD(ctx, in, a)
	case AdoptOSD:
		return n.adoptOSD(ctx, in, a)
	case OpenOSD:
		return n.openOSD(ctx, in, a)
	case CloseOSD:
		return n.closeOSD(ctx, a.Name)
	case StartOSD:
		return n.startOSD(ctx, in, a.Name, a.ID)
	case StopOSD:
		return n.stopOSD(ctx, a.ID)
	case ReleaseDisk:
		return n.releaseDisk(ctx, in, a)
	case MakeTable, DropTable:
		return n.changeTable(ctx, in, a)
	}
	return n.lead(ctx, in, a)
}

func must(m Mon, _ bool) Mon { return m }

func (n Node) writeConfig(in Intent, k Keys) error {
	for _, dir := range []string{n.Dir, n.files().osds(), n.files().run()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for path, content := range n.wanted(in, k) {
		if err := atomicfile.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeDir removes a directory atomically, so that a part of it is never
// mistaken for the whole.
func removeDir(path string) error {
	old := filepath.Join(filepath.Dir(path), ".old-"+filepath.Base(path))
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(path, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// createTemp creates a directory that will be renamed to path. If keep is set,
// it keeps the remains of an earlier attempt, to continue from.
func createTemp(path string, keep bool) (string, error) {
	tmp := filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
	if !keep {
		if err := os.RemoveAll(tmp); err != nil {
			return "", err
		}
	}
	return tmp, os.MkdirAll(tmp, 0o700)
}

func (n Node) makeMon(ctx context.Context, in Intent, first bool) error {
	l := n.files()
	tmp, err := createTemp(l.mon(), false)
	if err != nil {
		return err
	}
	monmap := filepath.Join(n.Dir, ".monmap")
	defer os.Remove(monmap)
	if first {
		if err := os.Remove(monmap); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m := must(in.mon(n.ID))
		args := []string{"--create", "--fsid", in.FSID, "--addv", m.Node, msgr2(m.Address), monmap}
		if _, err := command.Exec(ctx, command.Exe{Program: "monmaptool", Args: args, Verb: "--create"}); err != nil {
			return fmt.Errorf("create the monmap of cluster %s: %w", in.FSID, err)
		}
	} else if _, err := n.ceph(ctx, "", "mon", "getmap", "-o", monmap); err != nil {
		return err
	}
	args := []string{"--mkfs", "-i", n.ID, "--conf", l.conf(), "--mon-data", tmp, "--monmap", monmap, "--keyring", l.monKeys()}
	if _, err := command.Exec(ctx, command.Exe{Program: "ceph-mon", Args: args, Verb: "--mkfs", Timeout: makeTime}); err != nil {
		return fmt.Errorf("create the monitor %s: %w", n.ID, err)
	}
	return publish(tmp, l.mon())
}

func (n Node) makeMgr(ctx context.Context) error {
	key, err := n.key(ctx, "mgr."+n.ID, "mon", "allow profile mgr", "osd", "allow *", "mds", "allow *")
	if err != nil {
		return err
	}
	tmp, err := createTemp(n.files().mgr(), false)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteFile(filepath.Join(tmp, "keyring"), []byte(keyring(entity{name: "mgr." + n.ID, key: key})), 0o600); err != nil {
		return err
	}
	return publish(tmp, n.files().mgr())
}

// key returns the key of a daemon, which the mons create if there is none.
func (n Node) key(ctx context.Context, name string, caps ...string) (string, error) {
	raw, err := n.ceph(ctx, "", append([]string{"auth", "get-or-create", name}, caps...)...)
	if err != nil {
		return "", err
	}
	var all []struct{ Key string }
	if err := decode(raw, &all); err != nil || len(all) != 1 {
		return "", errors.Join(fmt.Errorf("the key of %s differs from the one expected", name), err)
	}
	return all[0].Key, nil
}

// start starts a daemon by the path of its program: the supervisor may not
// search PATH.
func (n Node) start(ctx context.Context, name string, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("%s is not installed on this node", argv[0])
	}
	if err := n.Daemons.Run(ctx, name, append([]string{path}, argv[1:]...)); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

func (n Node) stop(ctx context.Context, name string) error {
	if err := n.Daemons.Stop(ctx, name); err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

// running reports whether a daemon runs.
func (n Node) running(ctx context.Context, name string) (bool, error) {
	runs, err := n.Daemons.Running(ctx, name)
	if err != nil {
		return false, fmt.Errorf("query whether %s runs: %w", name, err)
	}
	return runs, nil
}

// wipe removes all signatures of a disk or partition.
func wipe(path string) error {
	if err := rawdisk.Wipe(path); err != nil {
		return fmt.Errorf("wipe %s: %w", path, err)
	}
	return nil
}

// startOSD starts an OSD on its disk, whose path may have changed at the last
// boot.
func (n Node) startOSD(ctx context.Context, in Intent, uuid string, id int) error {
	d, err := in.disk(uuid)
	if err != nil {
		return err
	}
	path, err := n.content(ctx, d, d.Path, mappingOf(uuid))
	if err != nil {
		return err
	}
	dir := n.files().osd(uuid)
	if have, err := os.Readlink(filepath.Join(dir, "block")); err != nil || have != path {
		if err := linkBlock(dir, path); err != nil {
			return err
		}
	}
	if err := n.linkDB(ctx, in, uuid, dir); err != nil {
		return err
	}
	return n.start(ctx, osdDaemon(id), []string{
		"ceph-osd", "-f", "-i", strconv.Itoa(id), "--osd-data", dir, "--keyring", filepath.Join(dir, "keyring"), "--conf", n.files().conf(),
	})
}

// stopOSD stops an OSD and marks it down: others detect the end of one, except
// that of the last.
func (n Node) stopOSD(ctx context.Context, id int) error {
	if err := n.stop(ctx, osdDaemon(id)); err != nil {
		return err
	}
	return n.run(ctx, "osd", "down", strconv.Itoa(id))
}

// releaseDisk wipes the disk of an OSD that is not in the cluster any more.
func (n Node) releaseDisk(ctx context.Context, in Intent, a Action) error {
	d, err := in.disk(a.Name)
	if err != nil {
		return err
	}
	f, err := probe(ctx, in.FSID, a.Path)
	if err != nil {
		return err
	}
	encrypted := d.Crypt != nil || f.Encrypted
	if encrypted {
		if err := n.closeOSD(ctx, a.Name); err != nil {
			return err
		}
	}
	if f.UUID == a.Name && (f.Content == OSD || f.Content == Begun || f.Content == Locked) {
		if err := n.erase(a.Path, encrypted); err != nil {
			return err
		}
	}
	if err := n.releaseDB(ctx, in, a.Name); err != nil {
		return err
	}
	return errors.Join(removeDir(n.files().osd(a.Name)), os.RemoveAll(filepath.Join(n.files().osds(), ".new-"+a.Name)))
}

// lead executes the actions that are done once for all nodes.
func (n Node) lead(ctx context.Context, in Intent, a Action) error {
	id := strconv.Itoa(a.ID)
	switch a.Do {
	case RemoveMon:
		return n.run(ctx, "mon", "remove", a.Name)
	case OutOSD:
		return n.run(ctx, "osd", "out", id)
	case InOSD:
		return n.run(ctx, "osd", "in", id)
	case PurgeOSD:
		return n.run(ctx, "osd", "purge", id, "--yes-i-really-mean-it")
	case SetClass:
		_, err := n.ceph(ctx, setClass(a))
		return err
	case MakeRule:
		return n.run(ctx, ruleArgs(a)...)
	case DropPool:
		return n.dropPool(ctx, a.Name, in.Dismantle)
	case MakePool, ChangePool:
		return n.pool(ctx, in.pool(a.Name), a.Do == MakePool)
	}
	return fmt.Errorf("unknown action: %v", a)
}

// setClass returns the commands for an OSD's device class. A class that is set
// cannot be replaced without removing it.
func setClass(a Action) string {
	return fmt.Sprintf("osd crush rm-device-class osd.%d\nosd crush set-device-class %s osd.%d\n", a.ID, a.Class, a.ID)
}

// ruleArgs returns the command that creates a pool's CRUSH rule.
func ruleArgs(a Action) []string {
	args := []string{"osd", "crush", "rule", "create-replicated", Pool{FailureDomain: a.Name, Class: a.Class}.Rule(), "default", a.Name}
	if a.Class != "" {
		args = append(args, a.Class)
	}
	return args
}

// dropPool deletes a pool and all data in it. Ceph's own pool is created again
// as long as device monitoring is on, so all of them are deleted without it.
func (n Node) dropPool(ctx context.Context, name string, all bool) error {
	ask := "config set mon mon_allow_pool_delete true\nosd pool rm " + name + " " + name + " --yes-i-really-really-mean-it\n"
	if all {
		ask = "device monitoring off\n" + ask
	}
	_, err := n.ceph(ctx, ask)
	return err
}

func (n Node) run(ctx context.Context, args ...string) error {
	_, err := n.ceph(ctx, "", args...)
	return err
}

// pool creates a pool, or changes it to the wanted state; each setting is a
// separate step.
func (n Node) pool(ctx context.Context, p Pool, anew bool) error {
	pgs, scale := p.PGs, "off"
	if pgs == 0 {
		pgs, scale = 32, "on"
	}
	if anew {
		if err := n.run(ctx, "osd", "pool", "create", p.Name, strconv.Itoa(pgs), strconv.Itoa(pgs), "replicated", p.Rule()); err != nil {
			return err
		}
	}
	set := [][]string{{"pg_autoscale_mode", scale}, {"crush_rule", p.Rule()}, {"size", strconv.Itoa(p.Replicas)}, {"min_size", strconv.Itoa(p.MinReplicas())}}
	if p.PGs != 0 && !anew {
		set = append(set, []string{"pg_num", strconv.Itoa(p.PGs)})
	}
	var all strings.Builder
	if p.Replicas == 1 {
		all.WriteString("config set global mon_allow_pool_size_one true\n")
	}
	for _, s := range set {
		fmt.Fprintf(&all, "osd pool set %s %s %s", p.Name, s[0], s[1])
		if s[0] == "size" && p.Replicas == 1 {
			all.WriteString(" --yes-i-really-mean-it")
		}
		all.WriteString("\n")
	}
	// A line that fails is detected by the next observation: the pool is still
	// not in the wanted state.
	fmt.Fprintf(&all, "osd pool application enable %s rbd\n", p.Name)
	_, err := n.ceph(ctx, all.String())
	return err
}
