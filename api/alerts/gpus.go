package alerts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// gone is how old a GPU's report may be while its node reports; it is renewed every
// minute.
const gone = 5 * time.Minute

// promised is what is allocated to the instances on a GPU.
type promised struct{ vram, share, count int64 }

func (l *list) gpus(s State) {
	pools := map[string]api.GPUPoolSpec{}
	for _, p := range s.Pools {
		pools[p.Meta.Name] = p.Spec
	}
	on := map[api.GPUID]promised{}
	for _, i := range s.Instances {
		if a := i.Assignment; a.Gpu != "" {
			p := on[a.Gpu]
			on[a.Gpu] = promised{p.vram + a.VgpuVramBytes, p.share + a.VgpuSharePercent, p.count + 1}
		}
	}
	reported := map[api.NodeID]time.Time{} // of nodes that exist
	for _, n := range s.Nodes {
		if n.Assignment.State != api.NodeLost && n.Assignment.State != api.NodeSuspect {
			reported[api.NodeID(n.Meta.ID)] = n.Status.SeenAt
		}
	}
	for _, g := range s.GPUs {
		what, p := about{api.KindGPU, g.Meta}, on[api.GPUID(g.Meta.ID)]
		// Both times come from the node's own clock.
		if node, ok := reported[g.Status.Node]; ok && node.Sub(g.Status.SeenAt) > gone {
			l.critical(api.AlertGPUGone, what, &g.Status.SeenAt, says("GPU "+g.Meta.Name+" is no longer reported by its node; "+plural(int(p.count), "instance")+" on it").with(api.AlertParams{Count: p.count}),
				"check nvidia-smi and journalctl -u basalt-gpud on the node")
		}
		for _, c := range g.Status.Conditions {
			if !c.Status {
				l.critical(api.AlertGPUCondition, what, &c.Since, says("GPU "+g.Meta.Name+" has failed").because(cmp.Or(c.Message, c.Reason, c.Type)), "check nvidia-smi and journalctl -u basalt-gpud on the node")
			}
		}
		l.overpromised(g, what, p, pools[cmp.Or(g.Spec.Pool, api.DefaultPool)])
	}
}

// overpromised adds an alert for a GPU with more allocated than its pool allows: its
// time is allocated once, its VRAM as often as the pool's overcommit allows.
func (l *list) overpromised(g api.GPU, what about, p promised, pool api.GPUPoolSpec) {
	var words []string
	var params api.AlertParams
	most := pool.MaxVgpusPerGpu
	if may := pool.AllocatableBytes(g.Status.VramBytes); p.vram > may {
		words = append(words, fmt.Sprintf("%s of VRAM, at most %s allowed", size(p.vram), size(may)))
		params.Bytes, params.LimitBytes = p.vram, may
	}
	if p.share > 100 {
		words = append(words, fmt.Sprintf("%d %% of its time, at most 100 %% allowed", p.share))
		params.Percent = p.share
	}
	how := api.AlertCritical
	if most > 0 && p.count > most {
		if words == nil {
			how = api.AlertWarning
		}
		words = append(words, fmt.Sprintf("%d virtual GPUs, at most %d allowed", p.count, most))
		params.Count, params.Limit = p.count, most
	}
	if words != nil {
		l.add(api.AlertGPUPromised, how, what, nil, says("more of GPU "+g.Meta.Name+" is allocated than its pool allows: "+strings.Join(words, "; ")).with(params),
			"move or stop some of its instances, or change the pool")
	}
}

func size(n int64) string {
	const gib = 1 << 30
	return fmt.Sprintf("%.1f GiB", float64(n)/gib)
}
