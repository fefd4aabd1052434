package deploy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

func (n *Node) act(ctx context.Context, a Action) error {
	run := func(argv ...string) error {
		_, err := n.command(ctx, argv...)
		return err
	}
	switch a.Verb {
	case Run:
		if err := n.config.Daemons.Run(ctx, a.Name, a.Argv); err != nil {
			return fmt.Errorf("start %s: %w", a.Name, err)
		}
		return n.awaitServer(ctx, a)
	case Stop:
		if err := n.config.Daemons.Stop(ctx, a.Name); err != nil {
			return fmt.Errorf("stop %s: %w", a.Name, err)
		}
		return nil
	case CreateLocal:
		return n.create(ctx, a.File, func(file string) error { return run("ovsdb-tool", "create", file, localSchema) })
	case Create:
		return n.create(ctx, a.File, func(file string) error { return n.initial(ctx, a.DB, file) })
	case Found:
		return n.create(ctx, a.File, func(file string) error { return n.found(ctx, a, file) })
	case Join:
		return n.create(ctx, a.File, func(file string) error {
			return run(append([]string{"ovsdb-tool", "--cid=" + a.ID, "join-cluster", file, a.DB.schemaName(), a.Addr}, a.Others...)...)
		})
	case SetAside:
		if err := os.Rename(a.File, a.File+".old"); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	case Remove:
		return errors.Join(removed(a.File), removed(a.File+".old"))
	case Leave:
		return run("ovs-appctl", "--timeout=10", "-t", control(n.config.Paths.Run, a.DB), "cluster/leave", a.DB.schemaName())
	case Kick:
		return run("ovs-appctl", "--timeout=10", "-t", control(n.config.Paths.Run, a.DB), "cluster/kick", a.DB.schemaName(), a.ID)
	case Convert:
		if a.DB == "" {
			return run("ovsdb-client", "--timeout=15", "convert", "unix:"+n.config.Paths.OVSRun+"/db.sock", localSchema)
		}
		return run("ovsdb-client", "--timeout=15", "convert", "unix:"+socket(n.config.Paths.Run, a.DB), a.DB.schemaFile())
	case Configure:
		return run(append([]string{"ovs-vsctl", "--db=unix:" + n.config.Paths.OVSRun + "/db.sock", "--timeout=15", "--"}, a.Argv...)...)
	case Move:
		return n.move(ctx, a.ID, a.Addr)
	case DisableOffload:
		return ethtool.SetOffload(a.ID, false) //nolint:wrapcheck // it names the device
	case DropChassis:
		return run("ovn-sbctl", "--db=unix:"+socket(n.config.Paths.Run, SB), "--timeout=10",
			"--if-exists", "chassis-del", a.ID, "--", "--if-exists", "destroy", "Chassis_Private", a.ID)
	}
	return fmt.Errorf("unknown verb %q", a.Verb)
}

// create creates a database's file atomically; write creates it under another
// name.
func (n *Node) create(ctx context.Context, file string, write func(file string) error) error {
	tmp := filepath.Join(filepath.Dir(file), ".new-"+filepath.Base(file))
	if err := removed(tmp); err != nil {
		return err
	}
	if err := write(tmp); err != nil {
		return errors.Join(err, removed(tmp))
	}
	if err := os.Rename(tmp, file); err != nil {
		return err
	}
	return atomicfile.Sync(filepath.Dir(file))
}

// initial writes a database of one server with the row that "ovn-nbctl init"
// and "ovn-sbctl init" insert. A southbound database must have it from the
// start: ovn-northd inserts it if there is none, and ovn-controller 23.03
// dereferences a null pointer if it reads the database before that
// (debug_drop_collector_set of the missing SB_Global).
func (n *Node) initial(ctx context.Context, d DB, file string) error {
	if _, err := n.command(ctx, "ovsdb-tool", "create", file, d.schemaFile()); err != nil {
		return err
	}
	insert := fmt.Sprintf(`[%q,{"op":"insert","table":%q,"row":{}}]`, d.schemaName(), d.global())
	answer, err := n.command(ctx, "ovsdb-tool", "transact", file, insert)
	if err == nil && strings.Contains(answer, `"error"`) {
		err = fmt.Errorf("insert a row into %s: %s", d.global(), strings.TrimSpace(answer))
	}
	return err
}

// found writes the database file of a cluster's first server.
func (n *Node) found(ctx context.Context, a Action, file string) error {
	content := file + ".content"
	if err := removed(content); err != nil {
		return err
	}
	err := n.initial(ctx, a.DB, content)
	if err == nil {
		_, err = n.command(ctx, "ovsdb-tool", fmt.Sprintf("--election-timer=%d", n.config.Election.Milliseconds()),
			"create-cluster", file, content, a.Addr)
	}
	return errors.Join(err, removed(content))
}

// removed removes the file, and the lock file that ovsdb-tool leaves beside
// it, if they exist.
func removed(file string) error {
	for _, path := range []string{file, filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".~lock~")} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// awaitServer waits until a server that was started accepts connections, so
// that the next action of the plan does not fail.
func (n *Node) awaitServer(ctx context.Context, a Action) error {
	path := ""
	switch a.Name {
	case "ovs-db":
		path = n.config.Paths.OVSRun + "/db.sock"
	case "ovn-nb", "ovn-sb":
		path = socket(n.config.Paths.Run, a.DB)
	default:
		return nil
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		c, err := net.Dial("unix", path)
		if err == nil {
			return c.Close()
		}
		if running, err := n.running(ctx, a.Name); err != nil {
			return err
		} else if !running || time.Now().After(deadline) {
			return fmt.Errorf("%s did not start: %s", a.Name, lastLine(n.config.Daemons.LastOutput(ctx, a.Name)))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// move moves the addresses of a link to another, adding each to the new one
// first: if interrupted, both have it, and the next attempt continues.
func (n *Node) move(ctx context.Context, from, to string) error {
	text, err := n.command(ctx, "ip", "-json", "address", "show", "dev", from)
	if err != nil {
		return err
	}
	links, err := parseLinks([]byte(text))
	if err != nil {
		return err
	}
	for _, name := range []string{from, to} {
		if _, err := n.command(ctx, "ip", "link", "set", "dev", name, "up"); err != nil {
			return err
		}
	}
	for _, address := range links[from].Addresses {
		args := []string{address, "dev", to}
		if strings.Contains(address, ":") {
			args = append(args, "nodad")
		}
		if _, err := n.command(ctx, append([]string{"ip", "address", "replace"}, args...)...); err != nil {
			return err
		}
		if _, err := n.command(ctx, "ip", "address", "del", address, "dev", from); err != nil {
			return err
		}
	}
	return nil
}
