package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

const localSchema = "/usr/share/openvswitch/vswitch.ovsschema"

func (n *Node) observeSwitch(ctx context.Context, in Intent, o Switch) (Switch, error) {
	var err error
	if o.Kernel, err = n.kernelModule(ctx, in); err != nil {
		return o, err
	}
	o.Unmanaged = n.config.Unmanaged()
	socket := n.config.Paths.OVSRun + "/db.sock"
	if !o.Unmanaged {
		file := n.config.Paths.local()
		if _, err := os.Stat(file); err == nil {
			o.File = Good
			if !o.DB {
				// The server would report the same, at the cost of a start.
				if _, err := n.command(ctx, "ovsdb-tool", "query", file, `["Open_vSwitch"]`); refused(err) {
					o.File = Broken
				} else if err != nil {
					return o, fmt.Errorf("inspect %s: %w", file, err)
				}
			}
		}
	}
	if o.Unmanaged || o.DB && o.File == Good {
		answer, err := call(ctx, socket, "transact", configuredQuery...)
		if err == nil {
			o.Configured, err = parseConfigured(answer)
		}
		if err != nil && ctx.Err() != nil {
			return o, ctx.Err()
		}
		o.Daemon = o.Daemon || o.Unmanaged && o.Configured != nil
		o.Outdated = !o.Unmanaged && o.Configured != nil && n.outdated(ctx, socket, "Open_vSwitch", localSchema)
	}
	o.Links, err = n.observeLinks(ctx, in)
	return o, err
}

// kernelModule reports whether the kernel has the module, and tries to load
// it. A node without it gets the userspace datapath for good: a modprobe that
// is too slow on a busy machine is an error, not a result.
func (n *Node) kernelModule(ctx context.Context, in Intent) (bool, error) {
	_, missing := os.Stat(n.module)
	if missing == nil || n.probed || in.Datapath == Netdev {
		return missing == nil, nil
	}
	if _, err := n.command(ctx, "modprobe", "-q", "openvswitch"); err != nil && !refused(err) && !errors.Is(err, exec.ErrNotFound) {
		return false, fmt.Errorf("load kernel module openvswitch: %w", err)
	}
	n.probed = true // once per process: it starts another one
	_, missing = os.Stat(n.module)
	return missing == nil, nil
}

func (n *Node) observeLinks(ctx context.Context, in Intent) (map[string]Link, error) {
	wanted := map[string]bool{}
	if in.Underlay != "" {
		wanted[Underlay], wanted[in.Underlay] = true, true
	}
	for _, l := range in.External {
		wanted[l] = true
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	text, err := n.command(ctx, "ip", "-json", "address", "show")
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	all, err := parseLinks([]byte(text))
	if err != nil {
		return nil, err
	}
	for name, l := range all {
		if !wanted[name] {
			delete(all, name)
			continue
		}
		l.Offload = ethtool.Offload(name)
		all[name] = l
	}
	for _, family := range []string{"-4", "-6"} {
		text, err := n.command(ctx, "ip", family, "-json", "route", "show", "default")
		if err != nil {
			return nil, fmt.Errorf("list routes: %w", err)
		}
		var routes []struct {
			Dev string `json:"dev"`
		}
		if strings.TrimSpace(text) != "" {
			if err := json.Unmarshal([]byte(text), &routes); err != nil {
				return nil, fmt.Errorf("list routes: %w", err)
			}
		}
		for _, r := range routes {
			if l, ok := all[r.Dev]; ok {
				l.Default = true
				all[r.Dev] = l
			}
		}
	}
	return all, nil
}

// parseLinks decodes the output of ip -json address show.
func parseLinks(text []byte) (map[string]Link, error) {
	var all []struct {
		Name  string   `json:"ifname"`
		Flags []string `json:"flags"`
		Infos []struct {
			Local string `json:"local"`
			Bits  int    `json:"prefixlen"`
			Scope string `json:"scope"`
		} `json:"addr_info"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	links := map[string]Link{}
	for _, l := range all {
		link := Link{}
		for _, f := range l.Flags {
			link.Up = link.Up || f == "UP"
		}
		for _, a := range l.Infos {
			if a.Scope != "link" && a.Local != "" {
				link.Addresses = append(link.Addresses, fmt.Sprintf("%s/%d", a.Local, a.Bits))
			}
		}
		links[l.Name] = link
	}
	return links, nil
}

// configuredQuery are the parameters of "transact" (RFC 7047, 4.1.3).
var configuredQuery = []any{
	"Open_vSwitch",
	selectAll("Open_vSwitch", "external_ids"),
	selectAll("Bridge", "name", "datapath_type", "fail_mode", "ports"),
	selectAll("Port", "_uuid", "name", "interfaces"),
	selectAll("Interface", "_uuid", "error"),
}

// selectAll returns the operation that reads columns of all rows of a table.
func selectAll(table string, columns ...string) map[string]any {
	return map[string]any{"op": "select", "table": table, "where": []any{}, "columns": columns}
}

// parseConfigured decodes the answer to configuredQuery (RFC 7047, 4.1.3).
func parseConfigured(text []byte) (*Configured, error) {
	var results []struct {
		Rows  []map[string]json.RawMessage `json:"rows"`
		Error string                       `json:"error"`
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("query Open vSwitch database: %w", err)
	}
	if len(results) != 4 {
		return nil, errors.New("response of the Open vSwitch database does not have four parts")
	}
	for _, r := range results {
		if r.Error != "" {
			return nil, fmt.Errorf("query Open vSwitch database: %s", r.Error)
		}
	}
	c := &Configured{ExternalIDs: map[string]string{}, Bridges: map[string]Bridge{}}
	for _, row := range results[0].Rows {
		c.ExternalIDs = stringMap(row["external_ids"])
	}
	faults := map[string]string{} // by interface
	for _, row := range results[3].Rows {
		for _, id := range atoms(row["_uuid"]) {
			for _, fault := range atoms(row["error"]) {
				faults[id] = fault
			}
		}
	}
	type port struct {
		name       string
		interfaces []string
	}
	ports := map[string]port{}
	for _, row := range results[2].Rows {
		for _, id := range atoms(row["_uuid"]) {
			ports[id] = port{name: first(atoms(row["name"])), interfaces: atoms(row["interfaces"])}
		}
	}
	for _, row := range results[1].Rows {
		name := first(atoms(row["name"]))
		b := Bridge{Datapath: first(atoms(row["datapath_type"])), Secure: first(atoms(row["fail_mode"])) == "secure"}
		for _, id := range atoms(row["ports"]) {
			b.Ports = append(b.Ports, ports[id].name)
			for _, i := range ports[id].interfaces {
				// A tap whose machine has ended is not an error of the bridge.
				if faults[i] != "" && ports[id].name == name {
					b.Error = faults[i]
				}
			}
		}
		c.Bridges[name] = b
	}
	return c, nil
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// atoms returns the atoms of a value: a string, ["uuid", id] or ["set", [value
// …]]; none of any other value.
func atoms(raw json.RawMessage) []string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []string{s}
	}
	var pair []json.RawMessage
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 {
		return nil
	}
	var kind string
	if json.Unmarshal(pair[0], &kind) != nil {
		return nil
	}
	switch kind {
	case "uuid":
		if json.Unmarshal(pair[1], &s) == nil {
			return []string{s}
		}
	case "set":
		var set []json.RawMessage
		if json.Unmarshal(pair[1], &set) != nil {
			return nil
		}
		var all []string
		for _, v := range set {
			var inner []string
			if json.Unmarshal(v, &s) == nil {
				all = append(all, s)
			} else if json.Unmarshal(v, &inner) == nil && len(inner) == 2 && inner[0] == "uuid" {
				all = append(all, inner[1])
			}
		}
		return all
	}
	return nil
}

// stringMap decodes ["map", [[key, value] …]].
func stringMap(raw json.RawMessage) map[string]string {
	out := map[string]string{}
	var pair []json.RawMessage
	var entries [][]json.RawMessage
	if json.Unmarshal(raw, &pair) != nil || len(pair) != 2 || json.Unmarshal(pair[1], &entries) != nil {
		return out
	}
	for _, e := range entries {
		var k, v string
		if len(e) == 2 && json.Unmarshal(e[0], &k) == nil && json.Unmarshal(e[1], &v) == nil {
			out[k] = v
		}
	}
	return out
}

// column returns a column of all rows of a table.
func column(ctx context.Context, socket, db, table, column string) ([]string, error) {
	answer, err := call(ctx, socket, "transact", db, selectAll(table, column))
	if err != nil {
		return nil, err
	}
	var results []struct {
		Rows []map[string]json.RawMessage `json:"rows"`
	}
	if err := json.Unmarshal(answer, &results); err != nil || len(results) != 1 {
		return nil, fmt.Errorf("decode response: %w", err)
	}
	var all []string
	for _, row := range results[0].Rows {
		all = append(all, atoms(row[column])...)
	}
	return all, nil
}
