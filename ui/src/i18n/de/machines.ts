import type { machines as en } from '../en/machines';

export const machines: Record<keyof typeof en, string> = {
  'node.title': 'Knoten und GPUs',
  'node.Ready': 'Bereit',
  'node.Suspect': 'Ohne Nachricht',
  'node.Lost': 'Verloren',
  'node.Draining': 'Wird geräumt',
  'node.Drained': 'Geräumt',
  'node.Joining': 'Tritt bei',
  'node.storage': 'Speicherplatz',
  'node.free': '{free} frei von {all}',
  'node.version': 'Version',
  'node.seen': 'Zuletzt gesehen',
  'node.empty': 'Noch hat sich kein Knoten gemeldet',
  'node.emptyHelp': 'Ein Knoten meldet sich einige Sekunden, nachdem basaltd auf ihm gestartet ist.',

  'gpu.title': 'GPUs',
  'gpu.none': 'Es gibt keine GPU',
  'gpu.noneHelp':
    'basalt-gpud meldet die Karten eines Knotens; ohne Karte macht basalt-gpud --soft-gpu vram=8GiB eine aus den Prozessoren.',
  'gpu.where': '{name} in {node}',
  'gpu.resident': 'VRAM belegt',
  'gpu.vramOf': '{used} von {all}',
  'gpu.swapped': 'Im Arbeitsspeicher des Knotens',
  'gpu.promised': 'Ihren Mietern zugesagt: {vram} VRAM, {share} ihrer Zeit.',
  'gpu.tenants': 'Mieter von {name}',
  'gpu.limit': 'VRAM-Grenze',
  'gpu.share': 'Anteil',
  'gpu.nobody': 'Niemand nutzt sie.',
  'gpu.more': 'Angesehen wurden die ersten {n} Instanzen.',
};
