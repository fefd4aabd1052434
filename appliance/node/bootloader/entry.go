package bootloader

import (
	"regexp"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/mirror"
)

// Names of the firmware's boot entries: of the first disk, and of the one that mirrors
// it. GRUB's loader for UEFI is in the folder \EFI\basalt.
const (
	EntryName       = "basalt"
	EntryNameMirror = "basalt-mirror"
)

var entryNames = []string{EntryName, EntryNameMirror}

// loaderPath is the path of the loader that an entry starts.
const loaderPath = `\EFI\` + EntryName + `\grubx64.efi`

// Entry is an entry in the firmware's boot list.
type Entry struct {
	Number    string // four hexadecimal digits
	Name      string
	Partition string // its PARTUUID in lower case; empty: the entry names none
}

// entryLine matches a line of efibootmgr -v, such as
// "Boot0004* basalt	HD(2,GPT,0c9b…,0x1000,0x100000)/File(\EFI\basalt\grubx64.efi)".
var entryLine = regexp.MustCompile(`(?m)^Boot([0-9A-F]{4})\*? +(\S+)(?:\s+(.*))?$`)

var partitionGUID = regexp.MustCompile(`GPT,([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})`)

// ParseEntries returns the entries with our names from the output of efibootmgr -v.
func ParseEntries(out string) (all []Entry) {
	for _, m := range entryLine.FindAllStringSubmatch(out, -1) {
		if !slices.Contains(entryNames, m[2]) {
			continue
		}
		e := Entry{Number: m[1], Name: m[2]}
		if p := partitionGUID.FindStringSubmatch(m[3]); p != nil {
			e.Partition = strings.ToLower(p[1])
		}
		all = append(all, e)
	}
	return all
}

// entryCommands returns the commands that give each disk an entry. Entries of disks that
// are gone are removed only then: a disk that is missing for one start keeps its entry.
func entryCommands(s State) (commands [][]string) {
	var lacking []Disk
	taken := map[string]bool{}
	for _, d := range s.Disks {
		i := slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Partition == d.ID })
		if i < 0 {
			lacking = append(lacking, d)
		} else {
			taken[s.Entries[i].Name] = true
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	for _, e := range s.Entries {
		if !slices.ContainsFunc(s.Disks, func(d Disk) bool { return e.Partition == d.ID }) {
			commands = append(commands, []string{"efibootmgr", "-q", "-b", e.Number, "-B"})
		}
	}
	for _, d := range lacking {
		for _, name := range entryNames {
			if !taken[name] {
				taken[name] = true
				commands = append(commands, []string{"efibootmgr", "-q", "-c", "-d", "/dev/" + d.Name, "-p", espNumber, "-L", name, "-l", loaderPath})
				break
			}
		}
	}
	return commands
}

// espNumber is the number of the EFI system partition.
var espNumber = string(rune('0' + mirror.ESP))
