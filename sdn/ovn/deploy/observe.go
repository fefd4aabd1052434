package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (n *Node) observe(ctx context.Context, in Intent) (o Observed, err error) {
	var room unix.Statfs_t
	if err := unix.Statfs(n.config.Paths.State, &room); err != nil {
		return o, fmt.Errorf("%s: %w", n.config.Paths.State, err)
	}
	o.Free = room.Bavail * uint64(room.Bsize)
	for name, to := range map[string]*bool{"ovn-northd": &o.Northd, "ovn-controller": &o.Controller, "ovs-db": &o.Switch.DB, "ovs-vswitchd": &o.Switch.Daemon} {
		if *to, err = n.running(ctx, name); err != nil {
			return o, err
		}
	}
	if o.Switch, err = n.observeSwitch(ctx, in, o.Switch); err != nil {
		return o, err
	}
	if o.NB, err = n.observeDB(ctx, NB, in); err != nil {
		return o, err
	}
	if o.SB, err = n.observeDB(ctx, SB, in); err != nil {
		return o, err
	}
	if o.Controller {
		o.Connected = n.connected(ctx)
	}
	if len(in.Nodes) > 0 && (o.SB.Status.leads() || o.SB.Running && !in.Bootstrap.Clustered) {
		// Without an answer nothing is removed.
		o.Chassis, _ = column(ctx, socket(n.config.Paths.Run, SB), SB.schemaName(), "Chassis", "name")
	}
	return o, ctx.Err()
}

// running reports whether a daemon runs.
func (n *Node) running(ctx context.Context, name string) (bool, error) {
	runs, err := n.config.Daemons.Running(ctx, name)
	if err != nil {
		return false, fmt.Errorf("query whether %s runs: %w", name, err)
	}
	return runs, nil
}

func (n *Node) connected(ctx context.Context) bool {
	pid, err := os.ReadFile(filepath.Join(n.config.Paths.Run, "ovn-controller.pid"))
	if err != nil {
		return false
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		return false
	}
	out, err := appctl(ctx, fmt.Sprintf("%s/ovn-controller.%d.ctl", n.config.Paths.Run, number), "connection-status")
	return err == nil && strings.TrimSpace(out) == "connected"
}

func (n *Node) observeDB(ctx context.Context, d DB, in Intent) (o Database, err error) {
	file := n.config.Paths.File(d, in.Bootstrap.Generation)
	all, err := filepath.Glob(filepath.Join(n.config.Paths.State, string(d)+"-*.db*"))
	if err != nil {
		return o, err
	}
	for _, path := range all {
		if path != file && path != file+".old" {
			o.Stale = append(o.Stale, path)
		}
	}
	slices.Sort(o.Stale)
	name := "ovn-" + string(d)
	if o.Running, err = n.running(ctx, name); err != nil {
		return o, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return o, nil
	} else if err != nil {
		return o, err
	}
	if !o.Running {
		if err := n.inspect(ctx, d, file, &o); err != nil {
			return o, fmt.Errorf("inspect %s: %w", file, err)
		}
		if o.File == Good {
			o.LastOutput = lastLine(n.config.Daemons.LastOutput(ctx, name))
		}
		return o, ctx.Err()
	}
	// The server has read the whole file at its start.
	o.File = Good
	if !in.Bootstrap.Clustered {
		o.Outdated = n.outdated(ctx, socket(n.config.Paths.Run, d), d.schemaName(), d.schemaFile())
		return o, ctx.Err()
	}
	h, err := readHeader(file)
	if err != nil {
		return o, fmt.Errorf("inspect %s: %w", file, err)
	}
	// Set these even if the server is too busy to answer: a file without an
	// address would be treated as another member's.
	o.Clustered, o.Server, o.Address, o.Cluster = true, h.Server, h.Address, h.Cluster
	out, err := appctl(ctx, control(n.config.Paths.Run, d), "cluster/status", d.schemaName())
	if err != nil {
		// The server's error after its database was removed from it.
		o.Unknown = strings.Contains(err.Error(), "unknown cluster")
		return o, ctx.Err()
	}
	s, err := ParseStatus(out)
	if err != nil || s.Server != o.Server {
		return o, ctx.Err() // the answer is from the server of another file
	}
	o.Status, o.Cluster, o.Address = s, s.Cluster, s.Address
	if s.settled() || !s.member() {
		delete(n.alone, s.Server)
	} else if since, ok := n.alone[s.Server]; !ok {
		if len(n.alone) > 2*len(DBs) {
			clear(n.alone) // of servers that do not exist any more
		}
		n.alone[s.Server] = time.Now()
	} else {
		o.Leaderless = time.Since(since) >= n.config.Patience
	}
	o.Outdated = s.leads() && n.outdated(ctx, socket(n.config.Paths.Run, d), d.schemaName(), d.schemaFile())
	return o, ctx.Err()
}

// inspect determines the state of a file that no server has open. It is Broken
// only if ovsdb-tool reports so, never because ovsdb-tool did not run to its
// end.
func (n *Node) inspect(ctx context.Context, d DB, file string, o *Database) error {
	o.File = Broken
	h, err := readHeader(file)
	if !h.Clustered && err == nil {
		// This reads the whole file, as a server does.
		_, err := n.command(ctx, "ovsdb-tool", "query", file, `["`+d.schemaName()+`"]`)
		switch {
		case err == nil:
			o.File = Good
		case !refused(err):
			return err
		}
		return nil
	}
	o.Clustered = true
	out, checked := n.command(ctx, "ovsdb-tool", "check-cluster", file)
	switch {
	case refused(checked):
		return nil
	case checked != nil:
		return checked
	case strings.Contains(out, "left the cluster"):
		o.File = Left
		return nil
	case err != nil:
		return err
	}
	o.File, o.Server, o.Address, o.Cluster = Good, h.Server, h.Address, h.Cluster
	return nil
}

// refused reports whether a tool ran and exited with an error, instead of
// being killed or not started.
func refused(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Exited()
}

// outdated reports whether the installed schema is newer than that of the
// database, whose server listens on the socket. It queries the server once per
// version of the schema's file.
func (n *Node) outdated(ctx context.Context, socket, name, schema string) bool {
	info, err := os.Stat(schema)
	if err != nil || n.current[name].Equal(info.ModTime()) {
		return false
	}
	served, err := call(ctx, socket, "get_schema", name)
	if err != nil {
		return false
	}
	have, err := schemaVersion(served)
	if err != nil {
		return false
	}
	want, err := installedVersion(schema)
	if err != nil || newer(want, have) {
		return err == nil
	}
	n.current[name] = info.ModTime()
	return false
}

// newer reports whether version a is newer than b; both have the form x.y.z.
func newer(a, b string) bool {
	parse := func(s string) (v [3]int, ok bool) {
		parts := strings.Split(s, ".")
		if len(parts) != 3 {
			return v, false
		}
		for i, p := range parts {
			var err error
			if v[i], err = strconv.Atoi(p); err != nil {
				return v, false
			}
		}
		return v, true
	}
	x, ok := parse(a)
	y, ok2 := parse(b)
	return ok && ok2 && slices.Compare(x[:], y[:]) > 0
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
