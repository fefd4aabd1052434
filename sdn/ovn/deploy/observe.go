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
		if *to, err = n.config.Daemons.Running(ctx, name); err != nil {
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
	if len(in.Nodes) > 0 && (o.SB.Status.leads() || o.SB.Running && !in.Founding.Clustered) {
		// Without an answer nothing is removed.
		o.Chassis, _ = n.column(ctx, "unix:"+socket(n.config.Paths.Run, SB), SB.schemaName(), "Chassis", "name")
	}
	return o, ctx.Err()
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
	out, err := n.command(ctx, "ovs-appctl", "--timeout=5", "-t", fmt.Sprintf("%s/ovn-controller.%d.ctl", n.config.Paths.Run, number), "connection-status")
	return err == nil && strings.TrimSpace(out) == "connected"
}

func (n *Node) observeDB(ctx context.Context, d DB, in Intent) (o Database, err error) {
	file := n.config.Paths.File(d, in.Founding.Generation)
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
	if o.Running, err = n.config.Daemons.Running(ctx, name); err != nil {
		return o, err
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return o, nil
	} else if err != nil {
		return o, err
	}
	if !o.Running {
		if err := n.inspect(ctx, d, file, &o); err != nil {
			return o, fmt.Errorf("look at %s: %w", file, err)
		}
		if o.File == Good {
			o.Words = lastLine(n.config.Daemons.Words(ctx, name))
		}
		return o, ctx.Err()
	}
	// The whole file was read when the server started.
	o.File = Good
	if !in.Founding.Clustered {
		o.Outdated = n.outdated(ctx, "unix:"+socket(n.config.Paths.Run, d), d.schemaName(), d.schemaFile())
		return o, ctx.Err()
	}
	o.Clustered = true
	server, err := n.command(ctx, "ovsdb-tool", "db-sid", file)
	if err != nil {
		return o, fmt.Errorf("look at %s: %w", file, err)
	}
	o.Server = strings.TrimSpace(server)
	out, err := n.command(ctx, "ovs-appctl", "--timeout=5", "-t", control(n.config.Paths.Run, d), "cluster/status", d.schemaName())
	if err != nil {
		// What it says when its database was taken away from it.
		o.Unknown = strings.Contains(err.Error()+out, "unknown cluster")
		return o, ctx.Err()
	}
	s, err := ParseStatus(out)
	if err != nil || s.Server != o.Server {
		return o, ctx.Err() // an answer of the server of another file is none
	}
	o.Status, o.Cluster, o.Address = s, s.Cluster, s.Address
	if s.settled() || !s.member() {
		delete(n.alone, s.Server)
	} else if since, ok := n.alone[s.Server]; !ok {
		if len(n.alone) > 2*len(DBs) {
			clear(n.alone) // of servers that are no more
		}
		n.alone[s.Server] = time.Now()
	} else {
		o.Lonely = time.Since(since) >= n.config.Patience
	}
	o.Outdated = s.leads() && n.outdated(ctx, "unix:"+socket(n.config.Paths.Run, d), d.schemaName(), d.schemaFile())
	return o, ctx.Err()
}

// inspect says what the file is that no server has open. Broken it is only when
// ovsdb-tool says so, never because ovsdb-tool could not be run to its end.
func (n *Node) inspect(ctx context.Context, d DB, file string, o *Database) error {
	o.File = Broken
	_, err := n.command(ctx, "ovsdb-tool", "db-is-clustered", file)
	if o.Clustered = err == nil; err != nil && !refused(err) {
		return err
	}
	if !o.Clustered {
		// Reads the whole file, as a server does.
		_, err := n.command(ctx, "ovsdb-tool", "query", file, `["`+d.schemaName()+`"]`)
		switch {
		case err == nil:
			o.File = Good
		case !refused(err):
			return err
		}
		return nil
	}
	out, err := n.command(ctx, "ovsdb-tool", "check-cluster", file)
	switch {
	case refused(err):
		return nil
	case err != nil:
		return err
	case strings.Contains(out, "left the cluster"):
		o.File = Left
		return nil
	}
	if o.Server, err = n.command(ctx, "ovsdb-tool", "db-sid", file); err != nil {
		return err
	}
	if o.Address, err = n.command(ctx, "ovsdb-tool", "db-local-address", file); err != nil {
		return err
	}
	o.Server, o.Address, o.File = strings.TrimSpace(o.Server), strings.TrimSpace(o.Address), Good
	// One that has not joined yet may not know it.
	id, err := n.command(ctx, "ovsdb-tool", "db-cid", file)
	if o.Cluster = strings.TrimSpace(id); err != nil && !refused(err) {
		return err
	}
	return nil
}

// refused tells that a tool ran and said no: not that it was killed or never
// ran.
func refused(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Exited()
}

// outdated tells whether the installed schema is newer than the database's. It
// asks once for each version of the schema's file.
func (n *Node) outdated(ctx context.Context, remote, name, schema string) bool {
	info, err := os.Stat(schema)
	if err != nil || n.current[name].Equal(info.ModTime()) {
		return false
	}
	have, err := n.command(ctx, "ovsdb-client", "--timeout=5", "get-schema-version", remote, name)
	if err != nil {
		return false
	}
	want, err := n.command(ctx, "ovsdb-tool", "schema-version", schema)
	if err != nil || newer(strings.TrimSpace(want), strings.TrimSpace(have)) {
		return err == nil
	}
	n.current[name] = info.ModTime()
	return false
}

// newer compares versions x.y.z.
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
