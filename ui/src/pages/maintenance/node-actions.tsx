// The actions on one node: cordon and uncordon it, drain and undrain it, remove it.
import { Button } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { change, nodes } from '../../api/resource';
import { useText, type Key } from '../../i18n';
import { nodeState, type Node } from '../../lib/node';
import { Confirm } from '../../parts/confirm';

type Action = 'drain' | 'undrain' | 'close' | 'open' | 'remove';

const changes: Record<Exclude<Action, 'remove'>, Partial<Schemas['NodeSpec']>> = {
  drain: { drain: true },
  undrain: { drain: false },
  close: { unschedulable: true },
  open: { unschedulable: false },
};

export function NodeActions({ node, instances }: { node: Node; instances: number }) {
  const { t } = useText();
  const client = useQueryClient();
  const [asked, ask] = useState<Action | null>(null);
  const { id = '', name } = node.meta;
  const state = nodeState(node);
  // A lost node with instances, and one that does not respond, are removed only after the operator confirms that
  // they are powered off.
  const force = instances > 0 || state === 'Suspect';
  const act = useMutation({
    mutationFn: async (a: Action) => {
      if (a === 'remove')
        return ok(api.DELETE('/v1/nodes/{id}', { params: { path: { id }, query: force ? { force } : {} } }));
      return change(nodes, id, (now) => ({ kind: now.kind, meta: now.meta, spec: { ...now.spec, ...changes[a] } }));
    },
    onSuccess: () => (ask(null), client.invalidateQueries({ queryKey: ['Node', 'list'] })),
  });
  const possible: Action[] = [
    ...(node.spec.drain ? (['undrain'] as const) : ([node.spec.unschedulable ? 'open' : 'close', 'drain'] as const)),
    ...(state === 'Drained' || state === 'Lost' || state === 'Suspect' ? (['remove'] as const) : []),
  ];
  const text = (a: Action): Key => `mnt.${a}`;
  return (
    <div className="basalt-actions">
      {possible.map((a) => (
        <Button
          key={a}
          variant="link"
          isInline
          isDanger={a === 'remove'}
          aria-label={`${t(text(a))}: ${name}`}
          onClick={() => (act.reset(), ask(a))}
        >
          {t(text(a))}
        </Button>
      ))}
      {asked && (
        <Confirm
          title={t(`mnt.${asked}Title`, { name })}
          help={t(asked === 'remove' && force ? 'mnt.forceHelp' : `mnt.${asked}Help`, { name })}
          action={t(text(asked))}
          danger={asked === 'remove'}
          name={asked === 'remove' ? name : undefined}
          busy={act.isPending}
          error={act.error}
          onConfirm={() => act.mutate(asked)}
          onClose={() => ask(null)}
        />
      )}
    </div>
  );
}
