"""`/sites`: what can be asked; and deleting a site."""

from __future__ import annotations

from typing import get_args

from aiohttp import web

from core.access import Access
from core.errors import BadQuery, UnknownSite
from core.names import check_site_name
from server.auth import check_writable, require, writable_sites
from server.keys import DOCUMENTS, LIBRARY, LOADER
from server.middleware import json_response
from server.params import json_body, read_params
from server.sse import event, open_stream

routes = web.RouteTableDef()


@routes.get("/sites")
async def sites(request: web.Request) -> web.StreamResponse:
    """NLWeb's list of names, with our details beside it; with `streaming` the same as the one event of a
    stream."""
    params = await read_params(request)
    counts = await request.app[DOCUMENTS].sites(require(request, "read").scope)
    library = request.app[LIBRARY].current
    details = [
        {
            "name": site.name,
            "description": library.site(site.name).description,
            "examples": list(library.site(site.name).questions),
            "access": site.access,
            "documents": site.documents,
            "chunks": site.chunks,
        }
        for site in counts
    ]
    told = {"message-type": "sites", "sites": [s.name for s in counts], "details": details}
    if not params.flag("streaming", default=False):
        return json_response(told)
    response = await open_stream(request)
    await response.write(event(told))
    await response.write_eof()
    return response


@routes.put("/sites/{site}")
async def put(request: web.Request) -> web.Response:
    """`{access: public|private}`: who may ask a site. One that is not there is made, empty."""
    require(request, "write")
    site = check_site_name(request.match_info["site"])
    await check_writable(request, site)
    named = (await json_body(request)).get("access")
    access = next((one for one in get_args(Access) if one == named), None)
    if access is None:
        raise BadQuery(f"`access` is needed: {' or '.join(get_args(Access))}", field="access")
    await request.app[DOCUMENTS].set_access(site, access)
    return json_response({"site": site, "access": access})


@routes.delete("/sites/{site}")
async def delete(request: web.Request) -> web.Response:
    """Delete a site with everything in it; says how much went and that nothing is left."""
    require(request, "write")
    site = check_site_name(request.match_info["site"])
    if site not in await writable_sites(request):
        raise UnknownSite(f"there is no site `{site}`", field="site")
    gone = await request.app[LOADER].delete(site, None)
    return json_response(
        {"site": site, "documents": gone.documents, "chunks": gone.chunks, "left": gone.left}
    )
