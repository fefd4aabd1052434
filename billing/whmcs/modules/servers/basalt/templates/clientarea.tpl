{* All values are untrusted: each is escaped. *}
<div class="panel panel-default card mb-3">
    <div class="panel-heading card-header"><h3 class="panel-title card-title m-0">{$words.title|escape:'html'}</h3></div>
    <div class="panel-body card-body">
{if $problem}
        <div class="alert alert-warning" role="alert">{$problem|escape:'html'}</div>
{else}
        <table class="table">
            <tr><th scope="row">{$words.state|escape:'html'}</th><td>{$basalt.phase|escape:'html'}{if $basalt.reason} ({$basalt.reason|escape:'html'}){/if}</td></tr>
{if $basalt.customer}            <tr><th scope="row">{$words.customer|escape:'html'}</th><td>{$basalt.customer|escape:'html'}</td></tr>
{/if}{if $basalt.name}            <tr><th scope="row">{$words.machine|escape:'html'}</th><td>{$basalt.name|escape:'html'}</td></tr>
{/if}{if $basalt.vram}            <tr><th scope="row">{$words.gpu_memory|escape:'html'}</th><td>{$basalt.vram|escape:'html'}</td></tr>
{/if}{if $basalt.addresses}            <tr><th scope="row">{$words.addresses|escape:'html'}</th><td>{foreach $basalt.addresses as $a}<code>{$a|escape:'html'}</code> {/foreach}</td></tr>
{/if}{if $basalt.pending}            <tr><th scope="row">{$words.pending|escape:'html'}</th><td>{$basalt.pending|escape:'html'}</td></tr>
{/if}{if $basalt.lastError}            <tr><th scope="row">{$words.last_error|escape:'html'}</th><td>{$basalt.lastError|escape:'html'}</td></tr>
{/if}            <tr><th scope="row">{$words.portal_user|escape:'html'}</th><td>{$basalt.email|escape:'html'}</td></tr>
        </table>
{if $area.machines}
        <h4>{$words.machines|escape:'html'}</h4>
        <table class="table">
            <thead><tr><th scope="col">{$words.machine|escape:'html'}</th><th scope="col">{$words.state|escape:'html'}</th><th scope="col">{$words.gpu_memory|escape:'html'}</th><th scope="col">{$words.addresses|escape:'html'}</th></tr></thead>
            <tbody>
{foreach $area.machines as $m}                <tr><td><a href="{$m.page|escape:'html'}" target="_blank" rel="noopener noreferrer">{$m.name|escape:'html'}</a></td><td>{$m.phase|escape:'html'}</td><td>{$m.vram|escape:'html'}</td><td>{if $m.address}<code>{$m.address|escape:'html'}</code>{/if}</td></tr>
{/foreach}            </tbody>
        </table>
{/if}
{if $area.use}
        <h4>{$words.use|escape:'html'}</h4>
        <table class="table">
{foreach $area.use as $u}            <tr><th scope="row">{$u.name|escape:'html'}</th><td>{$u.quantity|escape:'html'}</td></tr>
{/foreach}        </table>
{/if}
{if $area.chart.bars}
        <figure>
            <figcaption>{$area.chart.title|escape:'html'} ({$words.at_most|escape:'html'} {$area.chart.most|escape:'html'})</figcaption>
            <svg viewBox="0 0 {$area.chart.width|escape:'html'} {$area.chart.height|escape:'html'}" width="100%" role="img" aria-label="{$area.chart.title|escape:'html'}" fill="currentColor">
{foreach $area.chart.bars as $b}                <rect x="{$b.x|escape:'html'}" y="{$b.y|escape:'html'}" width="{$b.width|escape:'html'}" height="{$b.height|escape:'html'}"><title>{$b.day|escape:'html'}: {$b.value|escape:'html'}</title></rect>
{/foreach}            </svg>
        </figure>
{/if}
{if $area.costs}
        <h4>{$words.costs|escape:'html'}</h4>
        <table class="table">
{foreach $area.costs.rows as $c}            <tr><th scope="row">{$c.name|escape:'html'}</th><td>{$c.amount|escape:'html'} {$area.costs.currency|escape:'html'}</td></tr>
{/foreach}            <tr><th scope="row">{$words.total|escape:'html'}</th><td><strong>{$area.costs.total|escape:'html'} {$area.costs.currency|escape:'html'}</strong></td></tr>
        </table>
{/if}
        <a class="btn btn-primary" href="{$login|escape:'html'}" target="_blank" rel="noopener noreferrer">{$words.open_portal|escape:'html'}</a>
{/if}
    </div>
</div>
