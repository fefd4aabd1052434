{* All values come from outside: each is escaped. *}
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
        <a class="btn btn-primary" href="{$login|escape:'html'}" target="_blank" rel="noopener noreferrer">{$words.open_portal|escape:'html'}</a>
{/if}
    </div>
</div>
