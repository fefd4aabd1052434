// The actions on one node: cordon and uncordon it, drain and undrain it, remove it.
import { Button } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { change, nodes } from '../../api/resource';
import { useText, type Key } from '../../i18n';
import { actionsOf, nodeState, type Node, type NodeAction } from '../../lib/node';
import { Confirm } from '../../parts/confirm';
import type { Bulk } from '../../parts/list-bulk';

type Change = Exclude<NodeAction, 'remove'>;

const changes: Record<Change, Partial<Schemas['NodeSpec']>> = {
  drain: { drain: true },
  undrain: { drain: false },
  close: { unschedulable: true },
  open: { unschedulable: false },
};

const changeNode = (n: Node, a: Change) =>
  change(nodes, n.meta.id ?? '', (now) => ({
    kind: now.kind,
    meta: now.meta,
    spec: { ...now.spec, ...changes[a] },
  }));

// Nodes are drained and removed one at a time: the instances of several may not fit on the others, and each removal
// has a confirmation of its own.
const forMany = ['close', 'open', 'undrain'] as const;

/** useNodeBulk returns the actions on many nodes of a list. */
export function useNodeBulk(): Bulk<Node>[] {
  const { t } = useText();
  return forMany.map((a) => ({
    id: a,
    text: t(`mnt.${a}`),
    help: t(`mnt.${a}Help`),
    applies: (n) => actionsOf(n).includes(a),
    run: (n) => changeNode(n, a),
  }));
}

export function NodeActions({ node, instances }: { node: Node; instances: number }) {
  const { t } = useText();
  const client = useQueryClient();
  const [asked, ask] = useState<NodeAction | null>(null);
  const { id = '', name } = node.meta;
  const state = nodeState(node);
  // A lost node with instances, and one that does not respond, are removed only after the operator confirms that
  // they are powered off.
  const force = instances > 0 || state === 'Suspect';
  const act = useMutation({
    mutationFn: async (a: NodeAction) => {
      if (a === 'remove')
        return ok(api.DELETE('/v1/nodes/{id}', { params: { path: { id }, query: force ? { force } : {} } }));
      return changeNode(node, a);
    },
    onSuccess: () => (ask(null), client.invalidateQueries({ queryKey: ['Node', 'list'] })),
  });
  const text = (a: NodeAction): Key => `mnt.${a}`;
  return (
    <div className="basalt-actions">
      {actionsOf(node).map((a) => (
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
