package libvirt

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strconv"

	"github.com/digitalocean/go-qemu/qemu"
	"github.com/digitalocean/go-qemu/qmp"
	lv "libvirt.org/go/libvirt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// Stats implements hypervisor.Driver: QMP, through libvirtd.
func (d *Driver) Stats(ctx context.Context, id api.InstanceID) (hypervisor.Stats, error) {
	var serials []string
	err := d.with(ctx, id, func(dom *lv.Domain) error {
		st, err := active(dom)
		if err != nil {
			return err
		}
		if !st.Active() {
			return api.Errorf(api.CodeState, "%s does not run", id)
		}
		o, err := d.owned(dom, 0)
		serials = o.DiskSerials
		return err
	})
	if err != nil {
		return hypervisor.Stats{}, err
	}
	var out hypervisor.Stats
	err = d.qmp(ctx, id, func(run func(command string, into any) error) error {
		var status struct {
			Status string `json:"status"`
		}
		if err := run("query-status", &status); err != nil {
			return err
		}
		var blocks []blockStats
		if err := run("query-blockstats", &blocks); err != nil {
			return err
		}
		out = stats(status.Status, blocks, serials)
		return nil
	})
	return out, err
}

type blockStats struct {
	QDev  string          `json:"qdev"`
	Stats qemu.BlockStats `json:"stats"`
}

// diskAlias is how libvirt names virtio disks, by their place: qdev is
// "/machine/peripheral/virtio-disk0/virtio-backend".
var diskAlias = regexp.MustCompile(`/virtio-disk([0-9]{1,3})/`)

func stats(status string, blocks []blockStats, serials []string) hypervisor.Stats {
	out := hypervisor.Stats{QMPStatus: status}
	for _, b := range blocks {
		m := diskAlias.FindStringSubmatch(b.QDev)
		if m == nil {
			continue // a disc
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

// qmp opens QMP to the domain and calls f with a function that runs one
// command and decodes its "return".
func (d *Driver) qmp(ctx context.Context, id api.InstanceID, f func(run func(string, any) error) error) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", d.opt.Socket)
	if err != nil {
		return api.Errorf(api.CodeUnavailable, "libvirtd does not answer")
	}
	defer conn.Close()
	result := make(chan error, 1)
	go func() {
		mon := qmp.NewLibvirtRPCMonitor(hypervisor.DomainName(id), conn)
		if err := mon.Connect(); err != nil {
			result <- err
			return
		}
		err := f(func(command string, into any) error {
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
			return json.Unmarshal(raw, &reply)
		})
		_ = mon.Disconnect()
		result <- err
	}()
	select {
	case err := <-result:
		if err != nil {
			return fmt.Errorf("QMP of %s: %w", id, err)
		}
		return nil
	case <-ctx.Done():
		_ = conn.Close() // which ends the goroutine
		return ctx.Err()
	}
}

// version from libvirt's number: major * 1,000,000 + minor * 1,000 + release.
func version(v uint64) string {
	return fmt.Sprintf("%d.%d.%d", v/1_000_000, v/1_000%1_000, v%1_000)
}
