package libvirt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"

	"github.com/digitalocean/go-qemu/qemu"
	"github.com/digitalocean/go-qemu/qmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Stats implements hypervisor.Driver. It uses QMP, through libvirtd.
func (d *Driver) Stats(ctx context.Context, id api.InstanceID) (hypervisor.Stats, error) {
	o, err := d.running(ctx, id)
	if err != nil {
		return hypervisor.Stats{}, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", d.opt.Socket)
	if err != nil {
		return hypervisor.Stats{}, errors.Join(api.Errorf(api.CodeUnavailable, "libvirtd is not responding"), err)
	}
	defer func() { _ = conn.Close() }()
	// go-qemu's API has no contexts: closing the connection ends its calls.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s, err := query(qmp.NewLibvirtRPCMonitor(hypervisor.DomainName(id), conn), o.DiskSerials)
	if ctx.Err() != nil {
		return hypervisor.Stats{}, ctx.Err()
	}
	if err != nil {
		return hypervisor.Stats{}, fmt.Errorf("query QMP of instance %s: %w", id, err)
	}
	return s, nil
}

// query reads the status and the block statistics over QMP.
func query(mon qmp.Monitor, serials []string) (hypervisor.Stats, error) {
	if err := mon.Connect(); err != nil {
		return hypervisor.Stats{}, err
	}
	defer func() { _ = mon.Disconnect() }()
	var status struct {
		Status string `json:"status"`
	}
	var blocks []blockStats
	if err := errors.Join(run(mon, "query-status", &status), run(mon, "query-blockstats", &blocks)); err != nil {
		return hypervisor.Stats{}, err
	}
	return stats(status.Status, blocks, serials), nil
}

// run runs one command and decodes its "return".
func run(mon qmp.Monitor, command string, into any) error {
	text, err := json.Marshal(qmp.Command{Execute: command})
	if err != nil {
		return err
	}
	raw, err := mon.Run(text)
	if err != nil {
		return err
	}
	reply := struct {
		Return any `json:"return"`
	}{into}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return fmt.Errorf("decode QMP reply: %w", err)
	}
	return nil
}

type blockStats struct {
	QDev  string          `json:"qdev"`
	Stats qemu.BlockStats `json:"stats"`
}

// diskAlias matches libvirt's alias of a virtio disk with its index: qdev is
// "/machine/peripheral/virtio-disk0/virtio-backend".
var diskAlias = regexp.MustCompile(`/virtio-disk([0-9]{1,3})/`)

func stats(status string, blocks []blockStats, serials []string) hypervisor.Stats {
	out := hypervisor.Stats{QMPStatus: status}
	for _, b := range blocks {
		m := diskAlias.FindStringSubmatch(b.QDev)
		if m == nil {
			continue // a CD-ROM
		}
		disk := hypervisor.DiskStats{
			ReadBytes: int64(b.Stats.ReadBytes), WriteBytes: int64(b.Stats.WriteBytes),
			ReadOps: int64(b.Stats.ReadOperations), WriteOps: int64(b.Stats.WriteOperations),
			ReadNanos: int64(b.Stats.ReadTotalTimeNanoseconds), WriteNanos: b.Stats.WriteTotalTimeNanoseconds,
			FlushOps: int64(b.Stats.FlushOperations), HighestWrittenByteOnHost: b.Stats.WriteHighestOffset,
		}
		if i, err := strconv.Atoi(m[1]); err == nil && i < len(serials) {
			disk.Serial = serials[i]
		}
		out.Disks = append(out.Disks, disk)
	}
	return out
}

// version formats libvirt's version number: major * 1,000,000 + minor * 1,000
// + release.
func version(v uint64) string {
	return fmt.Sprintf("%d.%d.%d", v/1_000_000, v/1_000%1_000, v%1_000)
}
