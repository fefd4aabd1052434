import type { machines as en } from '../en/machines';

export const machines: Record<keyof typeof en, string> = {
  'node.title': 'Knoten und GPUs',
  'node.Ready': 'Bereit',
  'node.Suspect': 'Antwortet nicht',
  'node.Lost': 'Ausgefallen',
  'node.Draining': 'Wird geleert',
  'node.Drained': 'Geleert',
  'node.Joining': 'Tritt bei',
  'node.storage': 'Speicherplatz',
  'node.free': '{free} von {all} frei',
  'node.version': 'Version',
  'node.seen': 'Zuletzt gesehen',
  'node.empty': 'Noch keine Knoten',
  'node.emptyHelp': 'Ein Knoten erscheint einige Sekunden, nachdem basaltd auf ihm gestartet ist.',

  'gpu.title': 'GPUs',
  'gpu.none': 'Keine GPUs',
  'gpu.noneHelp':
    'basalt-gpud meldet die GPUs eines Knotens. Ohne GPU emuliert basalt-gpud --soft-gpu vram=8GiB eine auf der CPU.',
  'gpu.where': '{name} auf {node}',
  'gpu.resident': 'VRAM belegt',
  'gpu.vramOf': '{used} von {all}',
  'gpu.swapped': 'In den Arbeitsspeicher des Knotens ausgelagert',
  'gpu.promised': 'Zugewiesen: {vram} des VRAMs, {share} der GPU-Zeit.',
  'gpu.tenants': 'Instanzen auf {name}',
  'gpu.limit': 'VRAM-Limit',
  'gpu.share': 'GPU-Zeit',
  'gpu.nobody': 'Keine Instanz nutzt diese GPU.',
  'gpu.more': 'Nur die ersten {n} Instanzen sind berücksichtigt.',
};
