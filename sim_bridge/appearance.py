"""What the scene looks like in one episode: camera azimuth, table texture, light."""

from __future__ import annotations

#: LIBERO's images that can lie under the objects; the first is the one LIBERO uses in these scenes.
SURFACES = (
    "light-gray-floor-tile", "brown_ceramic_tile", "ceramic", "dapper_gray_floor", "dark_floor_texture",
    "gray_ceramic_tile", "gray_floor", "grigia_caldera_porcelain_floor", "kona_gotham", "light_floor",
    "marble_floor", "martin_novak_wood_table", "meeka-beige-plaster", "rustic_floor",
    "seamless_wood_planks_floor", "table_light_wood", "white_marble_floor",
)
SURFACE_PREFIX = "surface_"
