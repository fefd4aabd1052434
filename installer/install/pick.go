package install

import (
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// Pick returns the one disk that the answers name and allow to be erased.
func Pick(disks []machine.Disk, a answers.Answers) (machine.Disk, error) {
	named := a.Disk.Serial != "" || a.Disk.ByID != ""
	var found []machine.Disk
	for _, d := range disks {
		if matches(d, a.Disk) && (named || d.Refusal == nil) {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return machine.Disk{}, api.Errorf(api.CodeNotFound, "no disk here fits the rule in disk").At("disk").WithHint("this machine has: %s", overview(disks))
	case len(found) > 1:
		return machine.Disk{}, api.Errorf(api.CodeConflict, "%d disks fit the rule in disk", len(found)).At("disk").
			WithHint("name one by its serial: %s", overview(found))
	}
	d := found[0]
	switch {
	case d.Refusal != nil:
		return d, api.Errorf(api.CodeInUse, "%s cannot be chosen: %s", d.Path, d.Refusal.Reason).At("disk").WithHint("%s", d.Refusal.Hint)
	case a.Erase != answers.EraseAnything && a.Erase != d.Serial:
		return d, api.Errorf(api.CodeInvalid, "erase allows %q, but the disk is %s", a.Erase, overview(found)).At("erase").
			WithHint("write its serial if that is the disk to erase")
	case d.Node && !a.Reinstall:
		return d, api.Errorf(api.CodeExists, "a finished Basalt node is on %s already", d.Path).At("disk").
			WithHint("remove the medium and start the computer from its disk; or write reinstall: true to erase that node with its data")
	}
	return d, nil
}

func matches(d machine.Disk, rule answers.Disk) bool {
	switch {
	case rule.Only:
		return true
	case rule.Serial != "":
		return d.Serial == rule.Serial
	case rule.ByID != "":
		return slices.Contains(d.ByID, rule.ByID)
	}
	return d.SizeBytes >= rule.Size.Min && (rule.Size.Max == 0 || d.SizeBytes <= rule.Size.Max)
}

// overview lists disks in one line.
func overview(disks []machine.Disk) string {
	if len(disks) == 0 {
		return "no disk that its kernel knows"
	}
	var all []string
	for _, d := range disks {
		s := d.Path + " (" + machine.Bytes(d.SizeBytes)
		if d.Serial != "" {
			s += ", serial " + d.Serial
		}
		if d.Refusal != nil {
			s += "; not usable: " + d.Refusal.Reason
		}
		all = append(all, s+")")
	}
	return strings.Join(all, ", ")
}

// PickNIC returns the network card that a path names.
func PickNIC(nics []machine.NIC, p answers.Path, field string) (machine.NIC, error) {
	var all []string
	for _, n := range nics {
		if n.Name == p.Interface || p.MAC != "" && n.MAC == p.MAC {
			return n, nil
		}
		all = append(all, n.Name+" ("+n.MAC+", "+n.Speed()+")")
	}
	return machine.NIC{}, api.Errorf(api.CodeNotFound, "there is no card %s%s", p.Interface, p.MAC).At(field).
		WithHint("this machine has: %s", strings.Join(all, ", "))
}
