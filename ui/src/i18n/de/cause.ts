export const cause = {
  'cause.no-room': 'Für diese Größe ist zurzeit kein Platz frei.',
  'cause.no-room.gpu': 'Zurzeit ist keine {model} mit {bytes} freiem VRAM verfügbar.',
  'cause.no-room.gpuShare': 'Zurzeit ist keine {model} mit {bytes} freiem VRAM und {share} ihrer Zeit verfügbar.',
  'cause.anyGpu': 'GPU',
  'cause.no-room.cpus': 'Zurzeit sind keine {n} vCPUs an einem Ort frei.',
  'cause.no-room.memory': 'Zurzeit sind keine {bytes} Arbeitsspeicher an einem Ort frei.',
  'cause.no-room.storage': 'Zurzeit sind keine {bytes} Speicherplatz an einem Ort frei.',
  'cause.room-reserved': 'Die freie Kapazität ist für Instanzen reserviert, die schon länger warten.',
  'cause.no-storage': 'Zurzeit hat kein Speicher Platz für ein Volume von {bytes}.',
  'cause.node-unavailable': 'Was dafür gebraucht wird, ist zurzeit nicht verfügbar. Danach geht es von selbst weiter.',
  'cause.data-lost': 'Die Daten sind verloren, weil die Maschine entfernt wurde, die sie speicherte. Löschen Sie es.',
  'cause.data-elsewhere': 'Es gibt Kapazität, aber nicht dort, wo die Daten gespeichert sind.',
  'cause.moving':
    'Während des Umzugs ist etwas ausgefallen. Sobald der neue Ort bekannt ist, geht es von selbst weiter.',
  'cause.not-placed': 'Wartet auf den Ort des Objekts, zu dem es gehört.',
} as const;
